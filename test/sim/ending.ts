import type { Admitted } from "../../src/admission/admission.ts";
import type { Exchange, ServeDeps } from "../../src/gateway/serve/context.ts";
import type { Relay } from "../../src/gateway/serve/endpoint.ts";
import { Streaming } from "../../src/gateway/serve/streaming.ts";
import type { Ending } from "../../src/ledger/event.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import type { SimProcess } from "./process.ts";
import type { RequestRecord, World } from "./world.ts";

/**
 * Ends an answer through the product's own stream code: one end comes first, sometimes others at the same moment or
 * while an excess is being covered. The stream decides which of them settles it.
 */
export async function endAnswer(
	world: World,
	process: SimProcess,
	record: RequestRecord,
	admitted: Admitted,
	ending: Ending,
): Promise<void> {
	const { random, timeline } = world;
	const open: { shutDown(): void }[] = [];
	const streaming = streamOf(process, record, admitted, ending, open);
	streaming.listen();
	streaming.enter("streaming");
	const others = [
		() => streaming.leave(),
		() => open[0]?.shutDown(),
		() => void streaming.settle("upstream_died", 502),
	];
	const atOnce = random.chance(0.1) ? random.pick(others) : undefined;
	if (random.chance(0.3)) {
		const late = random.pick(others.slice(0, 2));
		timeline.after(random.fraction() * random.pick([1, 10, 400]), `${process.name}: another end`, () => {
			if (!process.dead) late();
		});
	}
	atOnce?.();
	if (streaming.state === "streaming") await streaming.settle(ending, 200);
	else await untilSettled(world, process, streaming);
}

/** The excess is waited for elsewhere. */
async function untilSettled(world: World, process: SimProcess, streaming: Streaming<never>): Promise<void> {
	world.count("ended by another end");
	while (streaming.state !== "settled" && !process.dead)
		await new Promise<void>((resolve) => process.clock.after(5, resolve));
}

/** A stream that has delivered what its record says, with only the members that its ending uses. */
function streamOf(
	process: SimProcess,
	record: RequestRecord,
	admitted: Admitted,
	ending: Ending,
	open: { shutDown(): void }[],
): Streaming<never> {
	const usage = { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0, units: 0 };
	const basis = ending === "finished" ? "exact" : "estimated";
	const deps = {
		admission: process.admission,
		catalog: { limits: () => ({}) },
		clock: process.clock,
		telemetry: { log: process.log },
		clients: {
			openStreams: { add: (one: { shutDown(): void }) => void open.push(one), delete: () => void open.splice(0) },
		},
	};
	const context = {
		startedMs: process.clock.monotonicMs(),
		requestId: record.id,
		key: undefined,
		connection: { request: { signal: new AbortController().signal }, setIdleTimeout() {} },
	};
	const relay = { bill: () => ({ ...usage, cost: nanoUsd(record.delivered), basis }), fail: () => "" };
	const streaming = new Streaming<never>(
		deps as unknown as ServeDeps,
		{ context, admitted } as unknown as Exchange,
		relay as unknown as Relay<never>,
	);
	streaming.delivery.firstMs = 1;
	streaming.abort = new AbortController();
	return streaming;
}
