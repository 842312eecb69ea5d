#include "unidle/diagnose/configured/changed_names.h"

#include <gtest/gtest.h>

namespace unidle::diagnose {
namespace {

TEST(ChangedNames, WhatTheScriptGivesAnotherValue) {
  for (const char* text : {
           "bs = 1024\nwhile True:\n  try:\n    train(bs)\n    break\n  except RuntimeError:\n    bs //= 2\n",
           "bs = 1024\nbs = bs // 2\n",
           "bs: int = 1024\nif debug: bs = 8\n",
           "bs = 8\nfor bs in (64, 32, 16):\n  train(bs)\n",
           "bs = 8\ndef halve():\n    global bs\n    bs = 4\n",
           "bs = 8\ndef fit(bs):\n    while not fits(bs):\n        bs = max(1, int(bs * 0.9))\n",
           "bs = 8\nwhile not fits(bs := bs - 1):\n  pass\n",
           "bs = lr = 8\nbs, lr = 4, 1\n",
           "bs = 8\n(bs, lr) = tuned()\n",
           "bs = 8\nbs **= 2\n",
           "bs = 8\nwith smaller() as bs:\n  train(bs)\n",
       }) {
    EXPECT_TRUE(is_changed(text, "bs")) << text;
  }
}

TEST(ChangedNames, WhatStaysAsItIs) {
  for (const char* text : {
           "bs = 64\nloader = DataLoader(data, batch_size=bs)\n",
           "bs = 64\nif bs == 8 or bs <= 4 or bs != 3: pass\n",
           "bs = 64\ndef forward(x):\n    bs = x.shape[0]\n    bs, n = x.shape\n    return x\nprint(bs)\n",
           "bs = 64\nclass Model:\n    bs = 8\n",
           "bs = 64\ntrain(bs=bs)\nself.bs = bs\nargs.bs //= 2\n",
           "bs = 64\nsteps[bs] = 3\nbs.x = 2\n",
           "bs = 64\n# bs = 8\ntext = 'bs = 8'\n",
           "bs = 64\nsizes = [bs for bs in sizes]\n",
           "bs = 64\nhalf = bs // 2\nhalf = half - bs\n",
           "bs = (64\n",
       }) {
    EXPECT_FALSE(is_changed(text, "bs")) << text;
  }
}

}  // namespace
}  // namespace unidle::diagnose
