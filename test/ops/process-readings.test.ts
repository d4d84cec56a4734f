import { expect, test } from "bun:test";
import { join } from "node:path";

test("a process without free file descriptors reports the other metrics", async () => {
	const script = join(import.meta.dir, "no-descriptor-child.ts");
	const child = Bun.spawn(["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", process.execPath, script], {
		stdio: ["ignore", "pipe", "inherit"],
	});
	const said = await new Response(child.stdout).text();
	expect(await child.exited).toBe(0);
	expect(said).toMatch(/process_open_fds \[\]\nprocess_cpu_seconds_total \d/);
	expect(said).toMatch(/resident \d+\n$/);
});
