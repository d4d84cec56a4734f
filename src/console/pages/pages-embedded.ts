/** The pages inside the binary: build.ts fills this file. From source the pages are bundled on the first request. */
export const embeddedPages: Readonly<Record<string, string>> = {};
