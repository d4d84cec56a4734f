import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";

test("`.ci/run` runs the tests and its scripts with the Bun of `.ci/bun`", async () => {
	const folder = temporaryFolder();
	const [bin, stubs] = [join(folder, ".ci/bun/node_modules/.bin"), join(folder, "stubs")];
	for (const path of [bin, stubs]) mkdirSync(path, { recursive: true });
	copyFileSync(join(import.meta.dir, "../../.ci/run"), join(folder, ".ci/run"));
	symlinkSync(process.execPath, join(bin, "bun"));
	// Pretends to be another user, for whom the script installs no packages and stops no database.
	writeFileSync(join(stubs, "id"), "#!/bin/sh\necho 54321\n");
	chmodSync(join(stubs, "id"), 0o755);
	writeFileSync(
		join(folder, "package.json"),
		JSON.stringify({ scripts: { test: "bun run again", again: "bun test" } }),
	);
	writeFileSync(join(folder, "one.test.ts"), 'import { test } from "bun:test";\ntest("passes", () => {});\n');
	const run = Bun.spawn([join(folder, ".ci/run")], {
		env: { PATH: `${stubs}:/usr/bin:/bin`, TMPDIR: folder },
		stdout: "pipe",
		stderr: "inherit",
	});
	expect(await new Response(run.stdout).text()).toEndWith("\n1 passed, 0 failed\n");
	expect(await run.exited).toBe(0);
});
