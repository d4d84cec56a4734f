import { assert } from "../base/assert.ts";
import type { ChatMode, DialectName, Modality, ModelKind, ModelSpec } from "../catalog/model.ts";
import { type PicoUsdPerUnit, parseRatePerMillion } from "../money/nano-usd.ts";

/** What is known of a discovered model. */
export interface FoundModel {
	readonly id: string;
	readonly name: string;
	readonly kind: Extract<ModelKind, "chat" | "embedding">;
	readonly modes: readonly ChatMode[];
	readonly contextLength: number;
	readonly maxOutputTokens: number;
	/** True if prompts may contain images. */
	readonly images?: boolean;
	readonly parameters: readonly string[];
	readonly upstream: { readonly url: string; readonly model: string; readonly dialect: DialectName };
}

/** The first run's rates in USD per million tokens, for every model. They are play money, and the banner says so. */
export const DEMO_RATES = { input: "0.20", output: "0.60" } as const;

const TEMPLATE_OVERHEAD_TOKENS = 256;
/** A desk machine serves only a few requests at once; others wait in the service. */
const MAX_CONCURRENCY = 64;

/** Builds a catalogue entry at the demo's rates. */
export function demoModelSpec(found: FoundModel): ModelSpec {
	const { id, name, kind, contextLength, upstream } = found;
	const input = rate(DEMO_RATES.input);
	const zero = 0 as PicoUsdPerUnit;
	const output = kind === "chat" ? rate(DEMO_RATES.output) : zero;
	return Object.freeze({
		id,
		aliases: Object.freeze([]),
		name,
		kind,
		modes: new Set(kind === "chat" ? found.modes : []),
		inputModalities: new Set<Modality>(found.images === true ? ["text", "image"] : ["text"]),
		outputModalities: new Set<Modality>(["text"]),
		imageUrls: "data_only",
		contextLength,
		maxOutputTokens: kind === "chat" ? Math.min(found.maxOutputTokens, contextLength) : 0,
		templateOverheadTokens: TEMPLATE_OVERHEAD_TOKENS,
		textNormalization: "nfkc",
		parameters: new Set(found.parameters),
		unsupportedParameters: "ignore",
		rates: { input, cachedInput: input, output, request: zero, image: zero, audioSecond: zero, search: zero },
		upstreams: Object.freeze([
			Object.freeze({ ...upstream, apiKey: null, maxConcurrency: MAX_CONCURRENCY, keepAlive: true }),
		]),
	});
}

function rate(text: string): PicoUsdPerUnit {
	const pico = parseRatePerMillion(text);
	assert(pico !== undefined, `${text} is a rate`);
	return pico;
}
