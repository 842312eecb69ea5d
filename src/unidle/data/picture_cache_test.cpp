#include "unidle/data/picture_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

namespace unidle::data {
namespace {

Picture filled(std::uint8_t value) { return {2, 2, std::vector<std::uint8_t>(12, value)}; }

TEST(PictureCacheTest, DecodesOnceAndKeeps) {
  PictureCache cache(3, 100);
  int decodes = 0;
  const auto decode = [&] {
    ++decodes;
    return filled(7);
  };
  const Picture* first = cache.get(1, 12, decode);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->pixels, std::vector<std::uint8_t>(12, 7));
  EXPECT_EQ(cache.get(1, 12, decode), first);
  EXPECT_EQ(decodes, 1);
  EXPECT_EQ(cache.used_bytes(), 12u);
}

TEST(PictureCacheTest, WhatDoesNotFitIsLeftToTheCaller) {
  PictureCache cache(3, 30);
  EXPECT_NE(cache.get(0, 12, [] { return filled(0); }), nullptr);
  EXPECT_NE(cache.get(1, 12, [] { return filled(1); }), nullptr);
  const auto never = []() -> Picture { throw std::logic_error("was asked"); };
  EXPECT_EQ(cache.get(2, 12, never), nullptr);
  EXPECT_EQ(cache.get(2, 12, never), nullptr);
  EXPECT_NE(cache.get(0, 12, never), nullptr);
  EXPECT_LE(cache.used_bytes(), cache.budget_bytes());
}

TEST(PictureCacheTest, ABudgetOfZeroKeepsNothing) {
  PictureCache cache(3, 0);
  EXPECT_EQ(cache.get(0, 12, []() -> Picture { throw std::logic_error("was asked"); }), nullptr);
}

TEST(PictureCacheTest, AFailedDecodeIsTriedAgainAndTakesNoRoom) {
  PictureCache cache(3, 12);
  EXPECT_THROW(cache.get(0, 12, []() -> Picture { throw std::runtime_error("damaged"); }), std::runtime_error);
  EXPECT_EQ(cache.used_bytes(), 0u);
  EXPECT_NE(cache.get(0, 12, [] { return filled(3); }), nullptr);
}

TEST(PictureCacheTest, ManyThreadsDecodeEachPictureOnce) {
  constexpr std::size_t kPictures = 20;
  constexpr int kThreads = 8;
  for (int round = 0; round < 20; ++round) {
    PictureCache cache(kPictures, 12 * kPictures);
    std::atomic<int> decodes{0};
    std::atomic<int> wrong{0};
    std::latch start(kThreads);
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          start.arrive_and_wait();
          for (std::size_t i = 0; i < kPictures; ++i) {
            const std::size_t picture = thread % 2 == 0 ? i : kPictures - 1 - i;
            const Picture* found = cache.get(picture, 12, [&] {
              decodes.fetch_add(1);
              std::this_thread::yield();
              return filled(static_cast<std::uint8_t>(picture));
            });
            wrong.fetch_add(found == nullptr || found->pixels.at(11) != picture ? 1 : 0);
          }
        });
      }
    }
    EXPECT_EQ(decodes.load(), static_cast<int>(kPictures));
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(PictureCacheTest, WaitersOfAFailedDecodeTryThemselves) {
  PictureCache cache(1, 12);
  std::latch decoding(1);
  std::atomic<int> tries{0};
  std::jthread second([&] {
    decoding.wait();
    EXPECT_NE(cache.get(0, 12,
                        [&] {
                          tries.fetch_add(1);
                          return filled(1);
                        }),
              nullptr);
  });
  EXPECT_THROW(cache.get(0, 12,
                         [&]() -> Picture {
                           tries.fetch_add(1);
                           decoding.count_down();
                           throw std::runtime_error("damaged");
                         }),
               std::runtime_error);
  second.join();
  EXPECT_EQ(tries.load(), 2);
}

}  // namespace
}  // namespace unidle::data
