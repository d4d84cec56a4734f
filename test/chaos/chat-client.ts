import { postJson } from "../support/chat.ts";
import { nowMs } from "../support/wait.ts";
import { type FleetMember, MODEL } from "./fleet.ts";

export interface SentRequest {
	/** UUID of the request; undefined if the gateway never answered. */
	uuid: string | undefined;
	readonly member: number;
	readonly key: string;
	readonly streamed: boolean;
	/** Wall time when the request was sent, derived from the machine's monotonic clock. */
	readonly sentAtMs: number;
	status: number;
	/** Error code in the answer or in a stream's event. */
	code: string | undefined;
	retryAfter: string | null;
	tokens: number;
	/** True if the whole answer with its usage was received. */
	complete: boolean;
	left: boolean;
	usage: { prompt_tokens: number; completion_tokens: number; cost: number } | undefined;
	firstByteMs: number | undefined;
	endMs: number | undefined;
}

export interface ChatRequest {
	readonly words: number;
	readonly stream: boolean;
	readonly maxTokens: number;
	/** The client disconnects after this many tokens or milliseconds. */
	readonly leaveAfterTokens?: number;
	readonly leaveAfterMs?: number;
	/** Called at the first stream event with text. */
	readonly onFirstToken?: () => void;
}

const DEADLINE_MS = 30_000;

export const unsent = ({ index }: { index: number }, { id }: { id: string }, streamed: boolean): SentRequest => ({
	...{ uuid: undefined, member: index, key: id, streamed, sentAtMs: nowMs(), status: 0, code: undefined },
	...{ retryAfter: null, tokens: 0, complete: false, left: false, usage: undefined },
	...{ firstByteMs: undefined, endMs: undefined },
});

/** Sends a chat request and reads its answer. Never rejects. */
export async function sendChat(
	to: Pick<FleetMember, "index" | "url">,
	key: { id: string; secret: string },
	ask: ChatRequest,
): Promise<SentRequest> {
	const sent = unsent(to, key, ask.stream);
	const hangUp = new AbortController();
	const leave = () => {
		sent.left = true;
		hangUp.abort();
	};
	const deadline = setTimeout(() => hangUp.abort(), DEADLINE_MS);
	const leaving = ask.leaveAfterMs === undefined ? undefined : setTimeout(leave, ask.leaveAfterMs);
	try {
		const { signal } = hangUp;
		const response = await postJson(`${to.url}/v1/chat/completions`, key.secret, bodyOf(ask), { signal });
		sent.status = response.status;
		sent.retryAfter = response.headers.get("retry-after");
		sent.uuid = uuidOf(response.headers.get("x-request-id"));
		if (response.status === 200 && ask.stream) await readStream(response, sent, ask, leave);
		else await readWhole(response, sent);
	} catch {
		// The connection was aborted, reset or refused. What was received before is kept.
	} finally {
		clearTimeout(deadline);
		clearTimeout(leaving);
		sent.endMs = nowMs();
	}
	return sent;
}

/** Simulates users who send one request after the other until `stop`, with a pause after each answer. */
export function keepSending(users: readonly (() => Promise<SentRequest>)[], restMs: (answer: SentRequest) => number) {
	const sent: SentRequest[] = [];
	let stopping = false;
	const running = users.map(async (send) => {
		while (!stopping) {
			const answer = await send();
			sent.push(answer);
			await Bun.sleep(restMs(answer));
		}
	});
	return {
		sent: sent as readonly SentRequest[],
		async stop() {
			stopping = true;
			await Promise.all(running);
			return sent as readonly SentRequest[];
		},
	};
}

export function bodyOf(ask: ChatRequest) {
	const content = Array.from({ length: ask.words }, (_, at) => `word${at}`).join(" ");
	return { model: MODEL, stream: ask.stream, max_tokens: ask.maxTokens, messages: [{ role: "user", content }] };
}

async function readWhole(response: Response, sent: SentRequest): Promise<void> {
	const body = (await response.json()) as { error?: { code: string }; usage?: SentRequest["usage"] };
	sent.firstByteMs = nowMs();
	sent.code = body.error?.code;
	if (response.status !== 200 || body.usage === undefined) return;
	sent.usage = body.usage;
	sent.tokens = body.usage.completion_tokens;
	sent.complete = true;
}

async function readStream(response: Response, sent: SentRequest, ask: ChatRequest, leave: () => void): Promise<void> {
	const decoder = new TextDecoder();
	let rest = "";
	let hasToken = false;
	for await (const chunk of response.body as ReadableStream<Uint8Array>) {
		sent.firstByteMs ??= nowMs();
		const events = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
		rest = events.pop() ?? "";
		for (const event of events) noteEvent(event, sent);
		if (sent.tokens > 0 && !hasToken) {
			hasToken = true;
			ask.onFirstToken?.();
		}
		if (ask.leaveAfterTokens !== undefined && sent.tokens >= ask.leaveAfterTokens && !sent.complete) return leave();
	}
}

function noteEvent(event: string, sent: SentRequest): void {
	if (!event.startsWith("data: ")) return;
	const payload = event.slice("data: ".length);
	if (payload === "[DONE]") {
		sent.complete = sent.code === undefined;
		return;
	}
	const json = JSON.parse(payload) as {
		error?: { code: string };
		usage?: SentRequest["usage"] | null;
		choices?: { delta?: { content?: string } }[];
	};
	if (json.error) sent.code = json.error.code;
	if (json.usage) sent.usage = json.usage;
	if (json.choices?.[0]?.delta?.content) sent.tokens += 1;
}

/** UUID in a request id: `req_<32 digits>` for clients, or the UUID itself for the upstream. */
export function uuidOf(requestId: string | null): string | undefined {
	const digits = requestId?.replace(/^req_/, "").replaceAll("-", "") ?? "";
	return digits
		.match(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/)
		?.slice(1)
		.join("-");
}
