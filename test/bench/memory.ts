/** Resident memory per open stream, in fresh processes. */
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { startBare } from "./gateways.ts";
import { openIdleStreams } from "./idle-streams.ts";
import { runLoad } from "./load.ts";
import { residentBytes } from "./process-usage.ts";
import { streamBody } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { Answers, World } from "./world.ts";

/** Numbers of streams to open, each in addition to those that are already open. */
const STEPS = [1_000, 4_000];
/** Few streams, because a heap that grew in the warm-up would take the first streams without growing. */
const WARM_UP_STREAMS = 200;
const SETTLE_MS = 1_500;
/** Memory counts as steady after this time without change: the allocator returns memory only while idle. */
const STEADY_MS = 4_000;
const GIVEN_BACK_MS_MAX = 20_000;
const LOOK_MS = 500;
const GONE_BYTES_MIN = 1024 * 1024;
const ROUNDS = { quick: 1, full: 3 };

export async function measureMemory(world: World, figures: Figures): Promise<void> {
	const nginx = world.gateways.find(({ name }) => name === "nginx");
	if (nginx) await measure(world, figures, nginx, world.secrets);
	const rounds = world.mode.quick ? ROUNDS.quick : ROUNDS.full;
	for (let round = 0; round < rounds; round++) {
		const bare = await startBare(world.upstreamPort, world.secrets);
		await measure(world, figures, bare, world.secrets).finally(() => bare.stop());
		const product = await world.isolated(`memory${round}`);
		await world.charged(product.gateway, () => measure(world, figures, product.gateway, product.secrets));
		await product.stop();
	}
}

async function measure(world: World, figures: Figures, gateway: Gateway, secrets: readonly string[]): Promise<Answers> {
	const bytesOf = (model: string) => secrets.map((secret) => chatRequestBytes(gateway, secret, streamBody(model)));
	const [burst, idle] = [bytesOf("burst"), bytesOf("idle")];
	const warmUp = await runLoad({
		port: gateway.port,
		connections: 64,
		request: (connection) => burst[connection % burst.length] as Uint8Array,
		durationMs: 30_000,
		requestsMax: WARM_UP_STREAMS,
	});
	await Bun.sleep(SETTLE_MS);
	const before = residentBytes(gateway.pids());
	const groups = [];
	let open = 0;
	for (const streams of STEPS) {
		groups.push(await openIdleStreams(gateway.port, streams, (index) => idle[index % idle.length] as Uint8Array));
		open += streams;
		await Bun.sleep(SETTLE_MS);
		const perStream = (residentBytes(gateway.pids()) - before) / open / 1024;
		const name = `memory per open stream, ${open.toLocaleString("en-US")} open`;
		figures.add("memory", name, "KB", gateway.name, perStream);
	}
	await fetch(`http://127.0.0.1:${world.upstreamPort}/release`, { method: "POST" });
	for (const group of groups) await group.ended();
	await untilGivenBack(gateway);
	const after = (residentBytes(gateway.pids()) - before) / 1024 / 1024;
	figures.add("memory", "more memory than before, all ended", "MB", gateway.name, after);
	return warmUp;
}

async function untilGivenBack(gateway: Gateway): Promise<void> {
	const endsMs = performance.now() + GIVEN_BACK_MS_MAX;
	let least = residentBytes(gateway.pids());
	let leastAtMs = performance.now();
	while (performance.now() < Math.min(endsMs, leastAtMs + STEADY_MS)) {
		await Bun.sleep(LOOK_MS);
		const bytes = residentBytes(gateway.pids());
		if (bytes > least - GONE_BYTES_MIN) continue;
		least = bytes;
		leastAtMs = performance.now();
	}
}
