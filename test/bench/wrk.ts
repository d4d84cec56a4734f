/** The same plain requests from `wrk`, where it is installed: a check of our own client. */
import { join } from "node:path";
import type { Figures } from "./figures.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import type { World } from "./world.ts";

export async function wrk(world: World, figures: Figures): Promise<void> {
	if (!Bun.which("wrk")) return;
	const { mode } = world;
	// wrk cuts its last requests off, which the other scenarios' books must not see.
	const product = await world.isolated("wrk");
	const gateways = [
		...world.gateways
			.filter((gateway) => gateway !== world.product)
			.map((gateway) => ({ gateway, secrets: world.secrets })),
		product,
	];
	const script = join(world.folder, "wrk.lua");
	// Its shortest run is a second.
	const rounds = mode.quick ? 1 : mode.rounds;
	for (let round = 0; round <= rounds; round++) {
		for (const { gateway, secrets } of gateways) {
			await Bun.write(script, scriptOf(gateway.headers, secrets[0] as string));
			const seconds = Math.max(1, Math.ceil((round === 0 ? mode.warmUpMs : mode.windowMs) / 1000));
			const cpu = cpuMicros(gateway.pids());
			const url = `http://127.0.0.1:${gateway.port}/v1/chat/completions`;
			const child = Bun.spawn(["wrk", "-t1", "-c32", `-d${seconds}s`, "-s", script, url], { stdout: "pipe" });
			const text = await new Response(child.stdout).text();
			const used = cpuMicros(gateway.pids()) - cpu;
			const requests = Number(/(\d+) requests in/.exec(text)?.[1] ?? 0);
			const failed = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(text)?.[0];
			const ok = failed === undefined && requests > 0;
			world.checks.push({
				name: `failures of ${gateway.name} under wrk`,
				ok,
				detail: failed ?? `${requests} requests`,
			});
			if (round === 0) continue;
			figures.add("wrk", "CPU per request, small prompt", "µs", gateway.name, used / requests);
			figures.add("wrk", "requests/s, small prompt", "1/s", gateway.name, requests / seconds);
		}
	}
	await product.stop({ loose: true });
}

function scriptOf(headers: string, secret: string): string {
	const lines = headers.split("\r\n").filter((line) => line !== "");
	const more = lines.map((line) => {
		const [name = "", ...value] = line.split(": ");
		return `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value.join(": "))}`;
	});
	return `wrk.method = "POST"
wrk.body = ${JSON.stringify(chatBody("plain", SMALL_PROMPT_BYTES))}
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer ${secret}"
${more.join("\n")}
`;
}
