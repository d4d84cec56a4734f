import { Fault } from "../base/fault.ts";
import { nanoUsdOfJson } from "../money/json-usd.ts";
import { addUsd, type NanoUsd, ZERO_USD } from "../money/nano-usd.ts";

/** What a service is asked for, over and over. */
export interface BenchTarget {
	/** Without `/v1`. */
	readonly url: string;
	readonly apiKey: string;
	readonly model: string;
	readonly stream: boolean;
	readonly maxTokens: number;
	/** Words of the prompt. */
	readonly words: number;
}

/** What so many clients at once got of it. */
export interface BenchStep {
	readonly clients: number;
	readonly seconds: number;
	readonly answered: number;
	/** By code, also of connections that broke. */
	readonly refused: Readonly<Record<string, number>>;
	readonly completionTokens: number;
	readonly cost: NanoUsd;
	/** Milliseconds to the end of each answer, in order of size; of a stream to its first event too. */
	readonly endMs: readonly number[];
	readonly firstMs: readonly number[];
}

interface Answer {
	readonly usage?: { readonly completion_tokens: number; readonly cost: Parameters<typeof nanoUsdOfJson>[0] } | null;
}

/** Samples of times that are kept of a step. */
const TIMES_MAX = 200_000;
/** A client that was refused comes again after so long. */
const REFUSED_PAUSE_MS = 50;

/** Each client asks again when it has its answer, until the time is over or `isOver`. Never rejects. */
export async function runStep(
	target: BenchTarget,
	step: { readonly clients: number; readonly seconds: number; isOver(spent: NanoUsd): boolean },
): Promise<BenchStep> {
	const refused: Record<string, number> = {};
	const endMs: number[] = [];
	const firstMs: number[] = [];
	let answered = 0;
	let completionTokens = 0;
	let cost = ZERO_USD;
	const beganMs = performance.now();
	const goesOn = () => performance.now() - beganMs < step.seconds * 1000 && !step.isOver(cost);

	async function client(nth: number): Promise<void> {
		for (let round = 0; goesOn(); round += 1) {
			const sinceMs = performance.now();
			try {
				const response = await send(target, `${nth}.${round}`);
				if (response.status !== 200) throw new Refused(await codeOf(response));
				const { answer, first } = target.stream ? await readStream(response) : await readWhole(response);
				answered += 1;
				completionTokens += answer.usage?.completion_tokens ?? 0;
				if (answer.usage) cost = addUsd(cost, nanoUsdOfJson(answer.usage.cost));
				if (endMs.length >= TIMES_MAX) continue;
				endMs.push(performance.now() - sinceMs);
				firstMs.push((first ?? performance.now()) - sinceMs);
			} catch (error) {
				const code = error instanceof Refused ? error.code : "connection";
				refused[code] = (refused[code] ?? 0) + 1;
				await Bun.sleep(REFUSED_PAUSE_MS);
			}
		}
	}

	await Promise.all(Array.from({ length: step.clients }, (_, nth) => client(nth)));
	const seconds = (performance.now() - beganMs) / 1000;
	const ordered = (times: number[]) => times.sort((a, b) => a - b);
	return {
		clients: step.clients,
		seconds,
		answered,
		refused,
		completionTokens,
		cost,
		endMs: ordered(endMs),
		firstMs: ordered(firstMs),
	};
}

/** One question that costs nothing: a service that is not there, a wrong key, an unknown model are no load to measure. */
export async function checkTarget({ url, apiKey, model }: BenchTarget): Promise<void> {
	const headers = { authorization: `Bearer ${apiKey}` };
	const response = await fetch(`${url}/v1/models/${encodeURIComponent(model)}`, { headers, redirect: "manual" }).catch(
		(cause: { code?: unknown }) => {
			const reason = typeof cause.code === "string" ? ` (${cause.code})` : "";
			throw new Fault(
				"service_unavailable",
				`Nobody answers at ${url}${reason}: start the service, or set TOLLGATE_URL or --url to its address.`,
				{ cause },
			);
		},
	);
	if (response.status !== 200)
		throw new Fault("service_unavailable", `The service at ${url} refuses ${model}: ${await codeOf(response)}.`);
	await response.body?.cancel();
}

class Refused extends Error {
	readonly code: string;
	constructor(code: string) {
		super(code);
		this.code = code;
	}
}

/** `nonce`: no two prompts are the same, or a server's cache would answer. */
function send({ url, apiKey, model, stream, maxTokens, words }: BenchTarget, nonce: string): Promise<Response> {
	const content = `${nonce} ${"word ".repeat(Math.max(0, words - 1))}`;
	return fetch(`${url}/v1/chat/completions`, {
		method: "POST",
		headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
		body: JSON.stringify({
			model,
			max_tokens: maxTokens,
			messages: [{ role: "user", content }],
			...(stream ? { stream, stream_options: { include_usage: true } } : {}),
		}),
		redirect: "manual",
	});
}

async function readWhole(response: Response): Promise<{ answer: Answer; first: number | undefined }> {
	return { answer: (await response.json()) as Answer, first: undefined };
}

async function readStream(response: Response): Promise<{ answer: Answer; first: number | undefined }> {
	let first: number | undefined;
	let last = "";
	const decoder = new TextDecoder();
	for await (const bytes of response.body ?? []) {
		const text = decoder.decode(bytes, { stream: true });
		if (first === undefined && text.includes("data:")) first = performance.now();
		last = (last + text).slice(-8_192);
	}
	const events = last.split("\n").filter((line) => line.startsWith("data: {"));
	const withUsage = events.findLast((line) => line.includes('"usage":{'));
	if (!last.includes("data: [DONE]") || withUsage === undefined) throw new Refused("stream_ended_early");
	return { answer: JSON.parse(withUsage.slice("data: ".length)) as Answer, first };
}

async function codeOf(response: Response): Promise<string> {
	const text = await response.text();
	return /"code":"(\w{1,64})"/.exec(text)?.[1] ?? `status ${response.status}`;
}
