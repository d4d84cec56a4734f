import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./at-end.ts";

const folder = temporaryFolder();

test.each([
	["before", "testsMayTake(40); atEnd(() => {});"],
	["after", "atEnd(() => {}); testsMayTake(40);"],
])("a file's tests may take what it says %s it has something to stop", async (name, said) => {
	const path = join(folder, `${name}.test.ts`);
	writeFileSync(
		path,
		`import { test } from "bun:test";
		import { atEnd, testsMayTake } from ${JSON.stringify(join(import.meta.dir, "at-end.ts"))};
		${said}
		test("never ends", () => new Promise(() => {}));`,
	);
	const child = Bun.spawn([process.execPath, "test", path], { cwd: folder, stderr: "pipe", timeout: 15_000 });
	expect(await new Response(child.stderr).text()).toContain("timed out after 40ms");
});
