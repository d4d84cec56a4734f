/** What a gateway's core is worth: processor time of a million streamed tokens, and how many streams a core carries. */
import { PLAIN_BODY_BYTES } from "./fast-upstream.ts";
import type { Figures } from "./figures.ts";
import type { Gateway } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { peopleOf } from "./people.ts";
import { cpuMicros } from "./process-usage.ts";
import { chatBody, SMALL_PROMPT_BYTES } from "./prompts.ts";
import { startTalk } from "./talk-client.ts";
import type { World } from "./world.ts";

const TOKENS_PER_SECOND = 30;
/** Of a whole answer, at four bytes each. */
const WHOLE_ANSWER_TOKENS = PLAIN_BODY_BYTES / 4;
const WHOLE_CONNECTIONS = 32;
const RAMP_MS = 1_500;
/** Processor time is counted in hundredths of a second, and a core may be nearly idle. */
const WINDOW_MS_MIN = 3_000;
/** A core of one that carries a tenth of what the others do would only queue. */
const STREAMS_OF_SLOW = 16;
const SLOW = new Set(["LiteLLM"]);

export async function costOfTokens(world: World, figures: Figures): Promise<void> {
	const { mode, gateways, product, readingFloor } = world;
	// Its streams are cut off when enough was seen, which the other scenarios' books must not see.
	const own = await world.isolated("tokens");
	const others = gateways.filter((gateway) => gateway.streams && gateway !== product);
	for (let round = 0; round <= mode.rounds; round++) {
		for (const gateway of [...others, readingFloor, own.gateway]) {
			const secrets = gateway === own.gateway ? own.secrets : world.secrets;
			const durationMs = round === 0 ? mode.warmUpMs / 2 : Math.max(mode.windowMs, WINDOW_MS_MIN);
			const micros = await world.charged(gateway, () => microsPerToken(world, gateway, secrets, durationMs));
			if (round === 0) continue;
			figures.add("tokens", "a million tokens", "core-seconds", gateway.name, micros.perToken);
			const streams = 1e6 / (micros.perToken * TOKENS_PER_SECOND);
			figures.add("tokens", "streams of 30 tokens/s that a core carries", "", gateway.name, streams);
			figures.add("tokens", "core used", "%", gateway.name, micros.coreShare);
			figures.add("tokens", "tokens a second", "1/s", gateway.name, micros.perSecond);
		}
	}
	await own.stop({ loose: true });
	await wholeAnswers(world, figures);
}

/** The same tokens in one piece; also for gateways that pass no streams on. */
async function wholeAnswers(world: World, figures: Figures): Promise<void> {
	const { mode, gateways } = world;
	const body = chatBody("plain", SMALL_PROMPT_BYTES);
	for (let round = 0; round <= mode.rounds; round++) {
		for (const gateway of gateways) {
			let before = 0;
			const begin = () => {
				before = cpuMicros(gateway.pids());
			};
			const request = world.requests(gateway, body);
			const durationMs = round === 0 ? mode.warmUpMs / 2 : mode.windowMs;
			const load = { port: gateway.port, connections: WHOLE_CONNECTIONS, request, durationMs, begin };
			const { requests } = await world.charged(gateway, () => runLoad(load));
			if (round === 0) continue;
			const perToken = (cpuMicros(gateway.pids()) - before) / requests / WHOLE_ANSWER_TOKENS;
			figures.add("tokens", "a million tokens in whole answers of 150", "core-seconds", gateway.name, perToken);
		}
	}
}

async function microsPerToken(world: World, gateway: Gateway, secrets: readonly string[], durationMs: number) {
	const talk = startTalk({
		port: gateway.port,
		streams: SLOW.has(gateway.name) ? Math.min(STREAMS_OF_SLOW, world.mode.streams) : world.mode.streams,
		rampMs: RAMP_MS,
		durationMs: Number.POSITIVE_INFINITY,
		hangUpShare: 0,
		seed: 1,
		request: peopleOf(gateway, secrets),
	});
	await Bun.sleep(2 * RAMP_MS);
	const before = { micros: cpuMicros(gateway.pids()), tokens: talk.tokens(), atMs: performance.now() };
	await Bun.sleep(durationMs);
	const micros = cpuMicros(gateway.pids()) - before.micros;
	const tokens = talk.tokens() - before.tokens;
	const elapsedMs = performance.now() - before.atMs;
	talk.cut();
	const ended = await talk.ended;
	return {
		...ended,
		perToken: micros / tokens,
		coreShare: micros / (10 * elapsedMs),
		perSecond: (1000 * tokens) / elapsedMs,
	};
}
