import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { localServer } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { messageOf } from "../support/raw-answer.ts";
import { chatModel, withService } from "../support/service.ts";
import { type AnyEvent, assemble } from "./assemble.ts";
import { cutPositions } from "./play.ts";
import { type AssembledMessage, RECORDINGS, type Recording } from "./recording.ts";

/** Splits that are tested for each recording, each at another byte; over sockets one takes milliseconds. */
const CUTS = LONG ? 3 : 1;

/** Relays the recording that the last message or the prompt names as `<name>@<byte to split at>`. */
const server = localServer(async (request) => {
	if (request.method !== "POST") return Response.json({ object: "list", data: [] });
	const body = (await request.json()) as { messages?: { content: string }[]; prompt?: string };
	const [name, cut] = (body.prompt ?? body.messages?.at(-1)?.content ?? "").split("@");
	const bytes = RECORDINGS.find((recording) => recording.name === name)?.bytes as Uint8Array;
	async function* pieces() {
		if (Number(cut) > 0) {
			yield bytes.subarray(0, Number(cut));
			await new Promise((resolve) => setImmediate(resolve));
		}
		yield bytes.subarray(Number(cut));
	}
	return new Response(pieces() as unknown as ReadableStream, { headers: { "content-type": "text/event-stream" } });
});
const url = `http://127.0.0.1:${server.port}/v1`;
const service = await withService({
	models: [...new Map(RECORDINGS.map((recording) => [modelOf(recording), recording]))]
		.map(([id, { dialect, reasoningTokens }]) =>
			[chatModel({ id, url, dialect }), `        reasoning_tokens: ${reasoningTokens}`].join("\n"),
		)
		.join("\n"),
	limits: "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1",
});
const { secret } = await service.customer();
const through = new OpenAI({ apiKey: secret, baseURL: `${service.url}/v1`, maxRetries: 0 });
const direct = new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0 });

function modelOf({ dialect, reasoningTokens }: Recording): string {
	return `${dialect}-${reasoningTokens}`;
}

async function read(client: OpenAI, recording: Recording, cut: number, asked: boolean) {
	const { endpoint, n, name } = recording;
	const common = { model: modelOf(recording), stream: true, ...(n > 1 ? { n } : {}) } as const;
	const options = asked ? { stream_options: { include_usage: true } } : {};
	const text = `${name}@${cut}`;
	const events: AnyEvent[] = [];
	try {
		const stream =
			endpoint === "chat"
				? await client.chat.completions.create({ ...common, ...options, messages: [{ role: "user", content: text }] })
				: await client.completions.create({ ...common, ...options, prompt: text });
		for await (const event of stream) events.push(event as unknown as AnyEvent);
		return { said: assemble(events), events, threw: false };
	} catch {
		return { said: assemble(events), events, threw: true };
	}
}

/** If the service differs on purpose: the message that a client of the server itself assembles. */
function saidDirectly({ says, directly }: Recording): AssembledMessage {
	const { choices, usage, sources, ...choice } = directly;
	const list = choices ?? says.choices.map((one) => withoutUndefined({ ...one, ...choice }));
	return withoutUndefined({
		choices: list,
		usage: usage === undefined ? says.usage : usage,
		...((sources ?? says.sources) === undefined ? {} : { sources: sources ?? says.sources }),
	} as AssembledMessage);
}

function withoutUndefined<T extends object>(value: T): T {
	return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as T;
}

/**
 * The message as clients serialize it: openai-node unchanged, openai-python with every null, openai-go and -java
 * without nulls.
 */
function sentBack(message: Record<string, unknown>): Record<string, Record<string, unknown>> {
	const nulls = { annotations: null, audio: null, function_call: null, tool_calls: null };
	const members = Object.entries(message).filter(([, value]) => value !== null && value !== "");
	return { node: message, python: { ...nulls, ...message }, go: Object.fromEntries(members) };
}

const whole = RECORDINGS.filter(({ fails }) => fails === undefined);
const broken = RECORDINGS.filter(({ fails }) => fails !== undefined);

describe.each(whole.map((recording) => [recording.name, recording] as const))(
	"the recorded answer %s",
	(_, recording) => {
		test("gives the SDK the same answer as the server, except for intended changes", async () => {
			expect((await read(direct, recording, 0, true)).said).toEqual(saidDirectly(recording));
			for (const asked of [true, false]) {
				const { said, events, threw } = await read(through, recording, 0, asked);
				expect({ asked, threw, said }).toEqual({ asked, threw: false, said: recording.says });
				// The first choice must exist, because some clients that did not request usage read `choices[0]` of every event.
				expect(events.every(({ choices }) => asked || (choices as unknown[]).length > 0)).toBe(true);
				expect(events.at(-1)?.usage).toBeDefined();
			}
		});

		test("is accepted as a message of the next request", async () => {
			if (recording.endpoint !== "chat") return;
			const { events } = await read(through, recording, 0, true);
			const user = { role: "user", content: `${recording.name}@0` };
			for (const [client, answer] of Object.entries(sentBack(messageOf(events)))) {
				const body = { model: modelOf(recording), messages: [user, answer, user], stream: true };
				const response = await service.chat(secret, body);
				expect([client, answer, response.status]).toEqual([client, answer, 200]);
				await response.body?.cancel();
			}
		});

		test("gives the SDK the same answer however the network splits the bytes", async () => {
			const cuts = cutPositions(recording, 29);
			const offset = recording.name.length % 7;
			for (let at = 1; at <= CUTS; at += 1) {
				const cut = cuts[(Math.floor((cuts.length * at) / (CUTS + 1)) + offset) % cuts.length] as number;
				expect((await read(through, recording, cut, true)).said).toEqual(recording.says);
			}
		});
	},
);

test.each(broken.map((recording) => [recording.name, recording] as const))(
	"%s makes the SDK throw an error",
	async (_, recording) => {
		const { said, threw } = await read(through, recording, 0, true);
		expect(threw).toBe(true);
		expect(said.choices.every(({ finish }) => finish === null)).toBe(true);
	},
);

/** The SDK's helper reads the same events again, so the short run tests it with a third of the recordings. */
const helped = whole.filter(({ endpoint }) => endpoint === "chat").filter((_, at) => LONG || at % 3 === 0);

test.each(helped.map((recording) => [recording.name, recording] as const))(
	"%s is read by the SDK's streaming helper",
	async (_, recording) => {
		const { name, n, says } = recording;
		const stream = through.chat.completions.stream({
			model: modelOf(recording),
			messages: [{ role: "user", content: `${name}@0` }],
			...(n > 1 ? { n } : {}),
		});
		const answer = await stream.finalChatCompletion();
		expect(answer.choices.map(({ message }) => message.content ?? "")).toEqual(says.choices.map(({ text }) => text));
		expect(answer.choices.map(({ finish_reason }) => finish_reason as string | null)).toEqual(
			says.choices.map(({ finish }) => finish),
		);
		if (says.usage !== null)
			expect([answer.usage?.prompt_tokens, answer.usage?.completion_tokens]).toEqual([...says.usage]);
	},
);
