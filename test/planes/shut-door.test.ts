import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/at-end.ts";
import { startService } from "../support/service.ts";

const folder = temporaryFolder();
const client = join(folder, "client.ts");
/** Asks, leaves a file once the kernel has its request, and prints the answer's first line or why there is none. */
writeFileSync(
	client,
	`import { connect } from "node:net";
	import { writeFileSync } from "node:fs";
	const [, , port, sent] = process.argv;
	const socket = connect(Number(port), "127.0.0.1", () => {
		socket.write("GET /livez HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n", () => writeFileSync(sent, ""));
	});
	socket.once("data", (bytes) => {
		console.log(bytes.toString().split("\\r\\n")[0]);
		process.exit();
	});
	socket.once("error", ({ code }) => console.log(code));
	`,
);

test("who waits at the listener while a gateway is busy is served, though it stops before it looks", async () => {
	const service = await startService({ models: "  []" });
	const sent = join(folder, "sent");
	const { port } = new URL(service.url);
	const asking = Bun.spawn([process.execPath, client, port, sent], { stdio: ["ignore", "pipe", "inherit"] });
	// Until then this process takes nobody in: the kernel does.
	while (!existsSync(sent)) Bun.sleepSync(5);
	await service.stop();
	expect(await new Response(asking.stdout).text()).toBe("HTTP/1.1 200 OK\n");
}, 30_000);
