/**
 * How long prompts and answers are in published records of real use, as shapes: quantiles, and no record itself.
 *
 * - Conversations of Azure's inference trace of 2023 (Patel et al., "Splitwise", 2024; the trace is published under CC-BY):
 *   the medians are the paper's, 1,020 and 129 tokens, the other quantiles were read from a stretch of the trace. Prompts come in
 *   heaps, near 200, 400, 1,060 and 4,085 tokens.
 * - Its other service, of code: medians of 1,500 and 13 tokens from the same paper, the spread around them is an assumption.
 * - ShareGPT: means of 161 and 338 tokens (Kwon et al., "PagedAttention", 2023), the spread around them is an assumption.
 * - BurstGPT (Wang et al., 2024; CC-BY): quantiles of the first conversations of its log.
 */
import type { Random } from "../support/random.ts";

/** Ascending shares of all values, each with the value below which that share lies. */
type Quantiles = readonly (readonly [share: number, tokens: number])[];

interface Shape {
	readonly name: string;
	/** Of all requests. All weights together are 1. */
	readonly weight: number;
	readonly prompt: Quantiles;
	readonly answer: Quantiles;
}

/** Quantiles of a log-normal distribution with this mean: the normal ones at the shares below, in units of `sigma`. */
function logNormal(mean: number, sigma: number): Quantiles {
	const median = mean / Math.exp(sigma ** 2 / 2);
	const normal = [
		[0.001, -3.09],
		[0.05, -1.645],
		[0.25, -0.674],
		[0.5, 0],
		[0.75, 0.674],
		[0.95, 1.645],
		[0.999, 3.09],
	] as const;
	return normal.map(([share, units]) => [share, median * Math.exp(units * sigma)] as const);
}

export const SHAPES: readonly Shape[] = [
	{
		name: "Azure, conversations",
		weight: 0.4,
		prompt: [
			[0, 12],
			[0.1, 195],
			[0.2, 375],
			[0.42, 430],
			[0.5, 1_020],
			[0.8, 1_150],
			[0.87, 2_500],
			[0.9, 4_070],
			[0.99, 4_140],
			[1, 14_050],
		],
		answer: [
			[0, 12],
			[0.1, 48],
			[0.25, 84],
			[0.5, 129],
			[0.65, 217],
			[0.7, 385],
			[0.95, 440],
			[0.99, 570],
			[1, 960],
		],
	},
	{
		name: "Azure, code",
		weight: 0.1,
		prompt: logNormal(1_500 * Math.exp(0.32), 0.8),
		answer: logNormal(13 * Math.exp(0.5), 1),
	},
	{ name: "ShareGPT", weight: 0.25, prompt: logNormal(161, 1.3), answer: logNormal(338, 1) },
	{
		name: "BurstGPT, conversations",
		weight: 0.25,
		prompt: [
			[0, 12],
			[0.15, 37],
			[0.3, 180],
			[0.5, 590],
			[0.75, 1_300],
			[0.9, 1_560],
			[1, 2_000],
		],
		answer: [
			[0, 11],
			[0.1, 95],
			[0.25, 210],
			[0.5, 345],
			[0.75, 445],
			[0.9, 600],
			[1, 1_650],
		],
	},
];

export interface Lengths {
	readonly promptTokens: number;
	readonly answerTokens: number;
}

/** People set a limit, and a run of the bench must come to its end: half a minute at 30 tokens a second. */
export const ANSWER_TOKENS_MAX = 1_000;

/** A request as one of these services had it. */
export function drawLengths(random: Random): Lengths {
	let rest = random.fraction();
	const shape = SHAPES.find(({ weight }) => {
		rest -= weight;
		return rest < 0;
	});
	const { prompt, answer } = shape ?? (SHAPES[0] as Shape);
	return {
		promptTokens: drawFrom(prompt, random),
		answerTokens: Math.min(ANSWER_TOKENS_MAX, drawFrom(answer, random)),
	};
}

/** Between two quantiles all ratios are equally likely. */
function drawFrom(quantiles: Quantiles, random: Random): number {
	const share = random.fraction();
	const above = quantiles.findIndex(([limit]) => limit > share);
	const [highShare, high] = quantiles[above === -1 ? quantiles.length - 1 : above] as readonly [number, number];
	const [lowShare, low] = quantiles[Math.max(0, (above === -1 ? quantiles.length : above) - 1)] as readonly [
		number,
		number,
	];
	const within = highShare === lowShare ? 0 : Math.max(0, share - lowShare) / (highShare - lowShare);
	return Math.max(1, Math.round(low * (high / low) ** within));
}
