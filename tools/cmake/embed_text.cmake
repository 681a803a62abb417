# Writes text files as C++ string literals, each with the SHA-256 of its text:
#   cmake -DOUTPUT=assets.cpp "-DTEXTS=page_style=page.css;page_script=page.js+timeline.js" -DFOLDER=DIR -DHEADER=report/page_assets.hpp -P embed_text.cmake
# Files joined by + become one text.
set(code "// Made by tools/cmake/embed_text.cmake.\n#include \"${HEADER}\"\n\nnamespace windtunnel::detail {\n")
foreach(text IN LISTS TEXTS)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${text}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "+" ";" files "${CMAKE_MATCH_2}")
  set(content "")
  foreach(file IN LISTS files)
    file(READ "${FOLDER}/${file}" part)
    string(APPEND content "${part}")
  endforeach()
  string(SHA256 hash "${content}")
  string(APPEND code "\nconst Asset ${name}{R\"WT(${content})WT\", \"${hash}\"};\n")
endforeach()
string(APPEND code "\n}  // namespace windtunnel::detail\n")
file(WRITE "${OUTPUT}" "${code}")
