#include "unidle/report/page/html.h"

#include <gmock/gmock.h>

namespace unidle::report {
namespace {

TEST(Escape, LeavesNoMarkup) {
  EXPECT_EQ(escape("</script><img onerror=\"x\" a='b'>&"),
            "&lt;/script&gt;&lt;img onerror=&quot;x&quot; a=&#39;b&#39;&gt;&amp;");
}

TEST(Escape, KeepsTextInOtherScriptsAndReplacesWhatIsNoUtf8) {
  EXPECT_EQ(escape("Zürich 東京 🚀"), "Zürich 東京 🚀");
  EXPECT_EQ(escape("a\xFF"
                   "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(escape("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // cut off
  EXPECT_EQ(escape("\xC0\xBC"), "\xEF\xBF\xBD\xEF\xBF\xBD");          // an overlong "<"
  EXPECT_EQ(escape("\xED\xA0\x80").find('\xED'), std::string::npos);  // a surrogate
  EXPECT_EQ(escape(std::string("a\0b\x1b[1m", 7)), "a\uFFFDb\uFFFD[1m");
  EXPECT_EQ(escape("a\u202eb"), "a\uFFFDb");  // changes the direction of the following text
}

TEST(Element, EscapesTextAndAttributesButNotMarkup) {
  const Html made = element("p.a.b", attribute("title", "\"x\""), "<i>", element("b", "y"));
  EXPECT_EQ(made.markup, "<p class=\"a b\" title=\"&quot;x&quot;\">&lt;i&gt;<b>y</b></p>");
}

TEST(Element, PlacesStayWithinTheirBar) {
  EXPECT_EQ(width_of(7).value, "width:100.00%");
  EXPECT_EQ(width_of(0.0 / 0.0).value, "width:0.00%");
  EXPECT_EQ(place_of(0.5, 0.25).value, "left:50.00%;width:0.00%");
}

TEST(Prose, ANumberStaysOnTheLineOfItsUnit) {
  const std::string gap = "\u00a0";
  EXPECT_EQ(element("p", "48 % of 1 min 7 s, 3 steps").markup,
            "<p>48" + gap + "% of 1" + gap + "min 7" + gap + "s, 3 steps</p>");
  EXPECT_EQ(prose("1.27 \u500d").markup, "1.27" + gap + "\u500d");
  EXPECT_EQ(element("code", "sleep 7 s").markup, "<code>sleep 7 s</code>") << "readers copy it";
}

}  // namespace
}  // namespace unidle::report
