#include "unidle/knobs/knob.h"

namespace unidle::knobs::catalogue {

const Knob& batch_size() {
  static const Knob kKnob{
      .name = "batch.size",
      .type = ValueType::kInt,
      .knob_class = KnobClass::kNumeric,
      .fallback = 1,
      .explanation =
          "Samples in one forward and backward pass; with batch.accumulation it makes the effective batch, "
          "which stays what it was unless a semantic change is allowed.",
      .names =
          {
              .spellings =
                  {
                      {"train batch size", Meaning::kGlobalBatch, false, "deepspeed gpt-neox composer"},
                      {"global|total|effective|optimizer|overall batch size ?train", Meaning::kGlobalBatch},
                      {"ims|imgs|images per batch", Meaning::kGlobalBatch},
                      {"samples|imgs|images|batch|sequences per gpu|device"},
                      {"batch size ?train ?per ?device ?gpu ?core ?local ?micro ?mini ?data ?loader ?step ?replica"},
                      {"batch ?train ?micro ?per ?gpu ?device", Meaning::kValue, true},
                  },
              .topic = "batch",
              .never_under =
                  "predict prediction predictor inference infer generate generation gen sampling teacher reward "
                  "retrieval index tokenizer preprocess cache buffer replay embedding export benchmark scale metadata",
          },
      .change =
          {
              .code = "DataLoader(..., batch_size={0})",
              .code_place = "loader",
              .package_code = "unidle.data.Loader(..., batch_size={0})",
          },
      .compared = true,
  };
  return kKnob;
}

}  // namespace unidle::knobs::catalogue
