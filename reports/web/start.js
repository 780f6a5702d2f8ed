new Page(readReport());
