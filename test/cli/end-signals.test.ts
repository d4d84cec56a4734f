import { expect, test } from "bun:test";
import { join } from "node:path";

const MODULE = join(import.meta.dir, "../../src/cli/end-signals.ts");
const PROGRAM = `
	import { onEndSignal } from ${JSON.stringify(MODULE)};
	onEndSignal((signal) => { console.log(signal); setTimeout(() => process.exit(7), 300); });
	console.log("ready");
	setInterval(() => {}, 1000);
`;

test("a process ignores a second SIGINT that arrives within a second of the first", async () => {
	const child = Bun.spawn([process.execPath, "-e", PROGRAM], { stdout: "pipe" });
	let out = "";
	for await (const chunk of child.stdout) {
		out += new TextDecoder().decode(chunk);
		if (out === "ready\n") child.kill("SIGINT");
		else if (out === "ready\nSIGINT\n") child.kill("SIGINT");
	}
	expect(await child.exited).toBe(7);
	expect(out).toBe("ready\nSIGINT\n");
});
