import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { isBelow, isWithin, relativeTo } from "../../src/core/path.ts";

// The way from the folder to the path; undefined: not in it.
const cases: readonly { readonly path: string; readonly folder: string; readonly way: string | undefined }[] =
  [
    { path: "/work", folder: "/work", way: "" },
    { path: "/work", folder: "/work/", way: "" },
    { path: "/work/a", folder: "/work", way: "a" },
    { path: "/work/a/b", folder: "/work/", way: "a/b" },
    { path: "/workshop", folder: "/work", way: undefined },
    { path: "/work\\a", folder: "/work", way: undefined },
    { path: "/work/a\\b", folder: "/work", way: "a\\b" },
    { path: "/work", folder: "/work/a", way: undefined },
    { path: "/", folder: "/work", way: undefined },
    { path: "/", folder: "/", way: "" },
    { path: "/work", folder: "/", way: "work" },
    { path: "C:\\work\\a\\b", folder: "C:\\work", way: "a/b" },
    { path: "C:\\workshop", folder: "C:\\work", way: undefined },
    { path: "C:\\work", folder: "C:\\", way: "work" },
    { path: "/work/", folder: "/work/", way: "" },
    { path: "/work/a", folder: "/work//", way: "a" },
    { path: "/home/a", folder: "/work", way: undefined },
    { path: "/a\\b\\c", folder: "/a\\b", way: undefined },
    { path: "/a\\/b", folder: "/a\\", way: "b" },
    { path: "/ab:\\c", folder: "/ab:", way: undefined },
    { path: "C:\\", folder: "C:\\", way: "" },
    { path: "C:\\work", folder: "C:", way: "work" },
    { path: "C:\\work\\a/b", folder: "C:\\work\\/", way: "a/b" },
    { path: "C:/work/a", folder: "C:\\work", way: undefined },
    { path: "C:\\work/a", folder: "C:\\work", way: "a" },
    { path: "\\\\host\\share\\a", folder: "\\\\host\\share", way: "a" },
  ];

describe("paths in folders", () => {
  for (const { path, folder, way } of cases) {
    test(`${path} in ${folder}`, () => {
      assertEquals(relativeTo(path, folder), way);
      assertEquals(isWithin(path, folder), way !== undefined);
      assertEquals(isBelow(path, folder), way !== undefined && way !== "");
    });
  }
});
