const pageData = readData();
if (pageData.kind === "compare") new ComparePage(decodeComparison(pageData));
else new RunPage(decodeReport(pageData));
