// The page's style: two colour schemes, one breakpoint. Colours are distinguishable for colour-blind readers, and text
// has a contrast of at least 4.5 in both schemes.
#include "unidle/report/html.h"

namespace unidle::report {

std::string_view style() {
  return R"css(:root{color-scheme:light dark;--ground:#fcfcfb;--card:#fff;--text:#1c2126;--quiet:#59636e;--rule:#dfe3e6;
--grid:#e9ecee;--compute:#2f9e8f;--optimizer:#4a7fb5;--transfer:#d8b13c;--sync:#c2557e;--other:#a7afb6;--input:#e2793a;
--validate:#8b7cc4;--checkpoint:#8a6a52;--startup:#c9d0d6;--gpu:#2f9e8f;--cpu:#4a7fb5;--run0:#7b8894;--run1:#2f9e8f;
--run2:#8b7cc4;--run3:#e2793a;--critical:#b3261e;--warning:#9a5b00;--info:#3c6a99}
@media(prefers-color-scheme:dark){:root{--ground:#15181b;--card:#1b1f23;--text:#e5e8ea;--quiet:#9aa5af;--rule:#30363c;
--grid:#262b30;--compute:#43b3a3;--optimizer:#6d9fd3;--transfer:#dcbb55;--sync:#d9779b;--other:#6f7881;--input:#ea8c52;
--validate:#a294d8;--checkpoint:#ab8a70;--startup:#4a525a;--gpu:#43b3a3;--cpu:#6d9fd3;--run0:#93a0ac;--run1:#43b3a3;
--run2:#a294d8;--run3:#ea8c52;--critical:#ff8a80;--warning:#f0b35a;--info:#8fb8e8}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif}
main{max-width:1080px;margin:0 auto;padding:36px 20px 64px}
h1{font-size:26px;line-height:1.25;margin:2px 0 12px;font-weight:650;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:18px;margin:44px 0 14px;font-weight:620}
h3{font-size:15px;margin:0 0 6px;overflow-wrap:anywhere}
h4{font-size:13px;margin:12px 0 4px;color:var(--quiet);font-weight:600}
p{margin:0 0 8px;overflow-wrap:anywhere}
ul{margin:6px 0;padding-left:20px}
li{overflow-wrap:anywhere}
code{font:13px/1.4 ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;overflow-wrap:anywhere}
.brand{color:var(--quiet);font-size:13px;letter-spacing:.02em}
.answer{font-size:18px;line-height:1.45;max-width:46em;margin-bottom:10px}
.quiet,.command{color:var(--quiet)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:1px;background:var(--rule);border:1px solid var(--rule);border-radius:8px;overflow:hidden;margin:24px 0 0}
.tile{background:var(--card);padding:14px 16px}
.tile b{display:block;white-space:nowrap;font-size:21px;font-weight:620;line-height:1.25;letter-spacing:-.01em;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.tile b.word{font-size:17px;line-height:1.55}
.tile span{display:block}
.tile small{display:block;color:var(--quiet);font-size:12.5px}
.figures{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:30px 40px}
figure{margin:0;min-width:0}
figure.full{grid-column:1/-1}
figure.half{display:flex;flex-direction:column}
figure.half .wide,figure.half .narrow{margin-top:auto}
figcaption{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:0 0 6px;padding:0;font-size:13px;color:var(--quiet)}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
svg{display:block;width:100%;height:auto;font-family:inherit}
.narrow{display:none}
text.tick{font-size:12px;fill:var(--quiet);font-variant-numeric:tabular-nums}
text.label{font-size:12px;fill:var(--quiet)}
.axis{stroke:var(--quiet);stroke-width:1}
.grid{stroke:var(--grid);stroke-width:1}
path.line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
path.line.run0{stroke-width:3.2;opacity:.75}
path.raw{fill:none;stroke-width:1;opacity:.25}
.cards{display:grid;gap:14px}
.card{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:14px 18px}
.tag{font-size:12.5px;font-weight:600;color:var(--info);margin-right:8px}
.tag::before{content:"";display:inline-block;width:8px;height:8px;border-radius:50%;background:currentColor;margin-right:6px}
.warning .tag{color:var(--warning)}
.critical .tag{color:var(--critical)}
.fixes li{margin-bottom:6px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;margin:0 0 6px}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
th,td{text-align:left;padding:6px 18px 6px 0;border-bottom:1px solid var(--rule);vertical-align:top;font-weight:400;overflow-wrap:anywhere}
thead th{color:var(--quiet);font-size:13px;font-weight:600}
tbody th{min-width:8.5em}
.compare h3{margin:26px 0 4px}
.compare table{table-layout:fixed}
.compare tbody th{min-width:0}
.sides{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:10px 40px}
.sides>div{min-width:0}
.regression{color:var(--critical)}
details{margin-top:8px}
summary{cursor:pointer;color:var(--quiet)}
.line.run0{stroke:var(--run0)}.line.run1{stroke:var(--run1)}.line.run2{stroke:var(--run2)}.line.run3{stroke:var(--run3)}
.raw.run0{stroke:var(--run0)}.raw.run1{stroke:var(--run1)}.raw.run2{stroke:var(--run2)}.raw.run3{stroke:var(--run3)}
.line.gpu{stroke:var(--gpu)}.line.cpu{stroke:var(--cpu)}
.dot.run0,.swatch.run0{fill:var(--run0);background:var(--run0)}.dot.run1,.swatch.run1{fill:var(--run1);background:var(--run1)}
.dot.run2,.swatch.run2{fill:var(--run2);background:var(--run2)}.dot.run3,.swatch.run3{fill:var(--run3);background:var(--run3)}
.dot.gpu,.swatch.gpu{fill:var(--gpu);background:var(--gpu)}.dot.cpu,.swatch.cpu{fill:var(--cpu);background:var(--cpu)}
.compute{fill:var(--compute)}.optimizer{fill:var(--optimizer)}.transfer{fill:var(--transfer)}.sync{fill:var(--sync)}
.other{fill:var(--other)}.input{fill:var(--input)}.validate{fill:var(--validate)}.checkpoint{fill:var(--checkpoint)}.startup{fill:var(--startup)}
.swatch.compute{background:var(--compute)}.swatch.optimizer{background:var(--optimizer)}.swatch.transfer{background:var(--transfer)}
.swatch.sync{background:var(--sync)}.swatch.other{background:var(--other)}.swatch.input{background:var(--input)}
.swatch.validate{background:var(--validate)}.swatch.checkpoint{background:var(--checkpoint)}.swatch.startup{background:var(--startup)}
@media(max-width:760px){main{padding:22px 16px 48px}h1{font-size:22px}.answer{font-size:16.5px}
.figures{grid-template-columns:minmax(0,1fr)}.wide{display:none}.narrow{display:block;max-width:520px}
.tiles{grid-template-columns:1fr 1fr}.tile b{font-size:19px}th,td{padding-right:12px}tbody th{min-width:6.5em}
.compare table{font-size:13.5px}.compare th,.compare td{padding-right:8px}.compare th:first-child,.compare td:first-child{width:30%}}
@media print{body{background:#fff}.card,figure,.tile{break-inside:avoid}}
)css";
}

}  // namespace unidle::report
