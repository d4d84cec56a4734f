import { nanoUsd, type PicoUsdPerUnit, parseRatePerMillion, parseRatePerUnit } from "../money/nano-usd.ts";
import type { ModelKind, OperatorCost, Rates } from "./model.ts";
import { buildRates, RATE_NAMES, RATES_PER_MILLION, type RateName } from "./rate-cards.ts";
import { quoteValue, type YamlField, type YamlReader } from "./yaml-reader.ts";

const TOKENS_PER_RATE = 1_000_000;
/** Lowest rate in USD per million tokens. A lower one is probably meant per token, so it is refused. */
const RATE_USD_MIN = 0.001;
const DECIMALS_MAX = 12;
/** Digits of a rate in an error's hint: the last digits of a floating-point product may be wrong. */
const DIGITS_KEPT = 12;
const ZERO_RATE = 0 as PicoUsdPerUnit;

/** Rates that each kind of model can charge. Other rates would never be charged, so they are refused. */
const BILLABLE: Readonly<Record<ModelKind, readonly RateName[]>> = {
	chat: ["input", "cached_input", "output", "request", "image"],
	embedding: ["input", "cached_input", "request"],
	transcription: ["input", "cached_input", "output", "audio_second", "request"],
	image: ["image", "input", "cached_input", "output", "request"],
	rerank: ["search", "input", "cached_input", "request"],
};

/** Rates that each kind of model must have, as alternatives: without them output would be free by mistake. */
const PRODUCED: Readonly<Record<ModelKind, readonly (readonly RateName[])[]>> = {
	chat: [["input", "output"]],
	embedding: [["input"]],
	transcription: [["audio_second"], ["input", "output"]],
	image: [["image"]],
	rerank: [["search"], ["input"]],
};

/**
 * Reads a model's `rates:`, decimal strings: "0" to "1000000" USD per million tokens; `request`, `image`,
 * `audio_second` and `search` "0" to "9000" USD each. Missing rates are 0; `cached_input` defaults to `input`.
 */
export function readRates(
	reader: YamlReader,
	field: YamlField | undefined,
	kind: ModelKind | undefined,
): Rates | undefined {
	const map = reader.map(field, RATE_NAMES);
	if (field === undefined || map === undefined) return undefined;
	const rates = new Map<RateName, PicoUsdPerUnit>();
	for (const name of RATE_NAMES) {
		const given = map.get(name);
		if (given === undefined) continue;
		if (kind !== undefined && !BILLABLE[kind].includes(name)) {
			reader.report(given, `a model of kind ${kind} is not billed by this unit; remove the rate`);
		}
		rates.set(name, readRateField(reader, given, RATES_PER_MILLION.has(name)) ?? ZERO_RATE);
	}
	if (kind !== undefined && !PRODUCED[kind].some((names) => names.every((name) => rates.has(name)))) {
		const alternatives = PRODUCED[kind].map((names) => names.join(" and ")).join(", or for ");
		reader.report(field, `a model of kind ${kind} needs a rate for ${alternatives}; "0" makes it free`);
	}
	return Object.freeze(
		buildRates((name) => rates.get(name === "cached_input" && !rates.has(name) ? "input" : name) ?? ZERO_RATE),
	);
}

function readRateField(reader: YamlReader, field: YamlField, perMillion: boolean): PicoUsdPerUnit | undefined {
	const read = reader.scalar(field);
	if (read === undefined) return undefined;
	const parse = perMillion ? parseRatePerMillion : parseRatePerUnit;
	const meant = plainDecimal(read.value);
	const ofToken = perMillion && meant !== undefined ? hintOfToken(Number(meant)) : "";
	const rate = typeof read.value === "string" ? parse(read.value) : undefined;
	if (rate !== undefined) {
		if (ofToken !== "") reader.warn(field, `USD ${read.written} per million tokens is very low${ofToken}`);
		return rate;
	}
	if (meant !== undefined && parse(meant) !== undefined) {
		const written = typeof read.value === "string" ? quoteValue(read.written) : read.written;
		reader.report(field, `write rates as quoted decimal strings: "${meant}" instead of ${written}${ofToken}`);
		return undefined;
	}
	const form = perMillion
		? '"0" to "1000000" with at most 6 decimals (USD per million tokens)'
		: '"0" to "9000" with at most 12 decimals (USD each)';
	reader.report(field, `must be a decimal string from ${form}, got ${quoteValue(read.written)}${ofToken}`);
	return undefined;
}

/** Hint for a rate that is nearly 0 per million tokens: other price lists give rates per token. */
function hintOfToken(usd: number): string {
	const million = plainDecimal(Number((usd * TOKENS_PER_RATE).toPrecision(DIGITS_KEPT)));
	return usd === 0 || usd >= RATE_USD_MIN || million === undefined
		? ""
		: `; if it is the rate per token, write "${million}"`;
}

/** Writes small numbers such as `1e-7` as plain decimals. Undefined if the value is no amount or too long. */
function plainDecimal(value: unknown): string | undefined {
	const isNumber =
		typeof value === "number" || (typeof value === "string" && /^\d*\.?\d+(e[+-]?\d{1,2})?$/i.test(value));
	const number = isNumber ? Number(value) : Number.NaN;
	if (!(number >= 0 && number < 1e15)) return undefined;
	const plain = number.toFixed(DECIMALS_MAX).replace(/\.?0+$/, "");
	return Number(plain) === number ? plain : undefined;
}

const PICO_PER_NANO = 1000;
const COST_FIELDS = ["replica_hour", "input", "output"];

/**
 * Reads `cost:` of a model: the operator's own cost, as decimal strings, which customers do not see. `replica_hour` is
 * USD per replica and hour, `input` and `output` are USD per million tokens.
 */
export function readCost(reader: YamlReader, field: YamlField | undefined): OperatorCost | undefined {
	const map = reader.map(field, COST_FIELDS);
	if (field === undefined || map === undefined) return undefined;
	const of = (name: string, perMillion: boolean) => {
		const given = map.get(name);
		return given === undefined ? 0 : (readRateField(reader, given, perMillion) ?? 0);
	};
	if (COST_FIELDS.every((name) => map.get(name) === undefined))
		reader.report(field, `needs at least one of ${COST_FIELDS.join(", ")}`);
	const replicaHour = Math.round(of("replica_hour", false) / PICO_PER_NANO);
	return Object.freeze({ replicaHour: nanoUsd(replicaHour), input: of("input", true), output: of("output", true) });
}
