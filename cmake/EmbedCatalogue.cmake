# Writes a C++ source with the bytes of a catalogue: cmake -DCATALOGUE=FILE.po -DNAME=zh_CN -DGENERATED=FILE.cpp -P this.
file(READ ${CATALOGUE} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes
                     "${bytes}")
file(WRITE ${GENERATED}
"// Generated from po/${NAME}.po.
#include \"unidle/language/po.h\"

namespace unidle {
std::string_view ${NAME}_po() {
  static constexpr unsigned char kBytes[] = {
${bytes}};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}
}
")
