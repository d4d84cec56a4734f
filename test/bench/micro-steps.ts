/** The steps of a request, each alone on the shared fixtures. */
import { boundOf, NO_QUANTITIES } from "../../src/admission/price.ts";
import { measureChat, promptTokensMax } from "../../src/admission/prompt-bound.ts";
import { silentLog } from "../../src/base/log.ts";
import { billOf } from "../../src/gateway/bill/bill.ts";
import { readChatRequest } from "../../src/gateway/chat/chat-request.ts";
import { createChatEvents } from "../../src/gateway/stream-events.ts";
import { bearerSecret } from "../../src/keys/bearer.ts";
import { createDigest } from "../../src/keys/digest.ts";
import { createKeyring } from "../../src/keys/keyring.ts";
import type { AdmittedEvent } from "../../src/ledger/event.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { createSseReader } from "../../src/upstream/call/sse-reader.ts";
import { createChatReader } from "../../src/upstream/chat/chat-reader.ts";
import { readChatReply } from "../../src/upstream/chat/chat-whole.ts";
import { DIALECTS } from "../../src/upstream/dialects.ts";
import { generationText } from "../../src/upstream/generation-request.ts";
import { Prompt } from "../../src/upstream/prompt.ts";
import type { Replica } from "../../src/upstream/replicas/replica.ts";
import { plainAccountFields, plainKeyFields } from "../support/plain-key.ts";
import { ledgerOver, nullJournal, realJournal } from "./bench-ledger.ts";
import { createFixtures, STREAM_TOKENS } from "./fixtures.ts";
import { roadSteps } from "./road-steps.ts";
import type { Step } from "./step.ts";
import { watchSteps } from "./watch-steps.ts";

const fixtures = createFixtures();

/** All steps; `folder` is for journals. */
export async function createSteps(folder: string): Promise<Step[]> {
	const own = await ledgerSteps(folder);
	const road = await roadSteps(fixtures);
	return [
		...(await keySteps()),
		...requestSteps(),
		...own,
		...journalSteps(folder),
		...answerSteps(),
		...road,
		...watchSteps(fixtures),
	];
}

/** Gives the items in turn. */
function cycle<T>(items: readonly T[]): () => T {
	let at = 0;
	return () => {
		at = at + 1 === items.length ? 0 : at + 1;
		return items[at] as T;
	};
}

async function keySteps(): Promise<Step[]> {
	const digest = createDigest("p".repeat(64));
	const secret = cycle(fixtures.secrets);
	const known = cycle(fixtures.digests);
	const headers = cycle(fixtures.secrets.map((text) => new Headers({ authorization: `Bearer ${text}` })));
	let loaded = 0;
	const keyring = createKeyring({
		log: silentLog,
		async load() {
			loaded += 1;
			const id = `key_${loaded}`;
			return {
				seq: 1,
				key: plainKeyFields(id),
				account: plainAccountFields,
			};
		},
	});
	for (const text of fixtures.digests) await keyring.load(text);
	return [
		{ name: "key: header to secret, form and checksum", per: 1, run: () => bearerSecret(headers(), "service") },
		{ name: "key: digest", per: 1, run: () => digest(secret()) },
		{ name: "key: look-up in memory", per: 1, run: () => keyring.peek(known()) },
	];
}

function requestSteps(): Step[] {
	const { model } = fixtures;
	const sizes = [
		["small", fixtures.bodies.small],
		["100 KB", fixtures.bodies.kb100],
		["1 MB", fixtures.bodies.mb1],
	] as const;
	return sizes.flatMap(([label, text]) => {
		const body = JSON.parse(text) as Record<string, unknown>;
		const ask = readChatRequest(body, model);
		const messages = body.messages as readonly unknown[];
		const replica = { dialect: DIALECTS.openai, spec: () => ({ model: "served" }) } as Replica;
		const sent = {
			kind: "chat",
			fields: ask.fields,
			outputLimit: 128,
			n: 1,
			stream: false,
			parameters: model.parameters,
		} as const;
		return [
			{ name: `request: parse, ${label}`, per: 1, run: () => JSON.parse(text) },
			{ name: `request: check and cut, ${label}`, per: 1, run: () => readChatRequest(body, model) },
			{
				name: `request: upper bound of the cost, ${label}`,
				per: 1,
				run() {
					const measured = measureChat(messages, [], model);
					return boundOf(model.rateCard, {
						...NO_QUANTITIES,
						requests: 1,
						prompt: promptTokensMax(measured, model),
						completion: 128,
					});
				},
			},
			{
				name: `request: text for the upstream, ${label}`,
				per: 1,
				run: () => generationText(replica, { ...sent, prompt: new Prompt(messages) }, false),
			},
		];
	});
}

async function ledgerSteps(folder: string): Promise<Step[]> {
	const kinds = [
		["without a journal", nullJournal],
		["with its journal", realJournal(folder, "ledger")],
	] as const;
	const steps: Step[] = [];
	for (const [label, journal] of kinds) {
		const { ledger, writer } = await ledgerOver(journal, fixtures.admitted[0] as AdmittedEvent);
		const event = cycle(fixtures.settled);
		steps.push({
			name: `ledger: reserve and settle, ${label}`,
			per: 1,
			run() {
				const { charged, off, reserved, basis, ending, status, prompt, cached, completion, ...rest } = event();
				const { reasoning, units, replica, first, ms, ...admitted } = rest;
				const hold = ledger.reserve({ ...admitted, reserved });
				if (!hold) throw new Error("no credit");
				const outcome = { basis, ending, status, prompt, cached, completion, reasoning, units, replica, first, ms };
				return ledger.settle(hold, { ...outcome, costNanoUsd: nanoUsd(Math.min(charged, reserved)) });
			},
			after: () => writer.drain(),
		});
	}
	const bill = {
		promptTokens: 50,
		completionTokens: 60,
		cachedTokens: 0,
		reasoningTokens: 0,
	};
	const measured = { textBytes: 250, messages: 2, images: 0, hasTools: false };
	const asked = { model: fixtures.model, upperBound: { ...NO_QUANTITIES, completion: 128 }, choices: 1 };
	steps.push({
		name: "ledger: price of an answer",
		per: 1,
		run: () => billOf(asked, measured, bill, 300, 0),
	});
	return steps;
}

function journalSteps(folder: string): Step[] {
	const journal = realJournal(folder, "journal");
	const admits = cycle(fixtures.admitted.map((event) => JSON.stringify(event)));
	const settles = cycle(fixtures.settled.map((event) => JSON.stringify(event)));
	const batch = fixtures.settled.map((event) => JSON.stringify(event));
	return [
		{
			name: "journal: admit and settle",
			per: 1,
			run() {
				const segment = journal.admit(admits());
				journal.settle(settles());
				journal.acknowledge(segment);
				return segment;
			},
		},
		{
			name: "batch: JSON of 1,000 settlements, each",
			per: batch.length,
			run: () => `[${batch.join(",")}]`,
		},
	];
}

function answerSteps(): Step[] {
	const chunksOf = () => {
		const reader = createChatReader(DIALECTS.openai);
		return fixtures.payloads.map((payload) => reader.accept(payload)).filter((chunk) => chunk !== undefined);
	};
	const chunks = chunksOf();
	const head = {
		id: "chatcmpl-0123456789abcdef0123456789abcdef",
		createdS: 1_790_000_000,
		model: "bench-model",
		object: "chat.completion.chunk",
	};
	return [
		{
			name: "answer: read and rebuild, whole",
			per: 1,
			run: () => readChatReply(JSON.parse(fixtures.answer), DIALECTS.openai),
		},
		{
			name: "event: SSE reader",
			per: fixtures.payloads.length,
			run() {
				const reader = createSseReader();
				let events = 0;
				for (const piece of fixtures.pieces) events += reader.push(piece).length;
				return events;
			},
		},
		{ name: "event: parse and rebuild", per: STREAM_TOKENS, run: () => chunksOf().length },
		{
			name: "event: text for the client",
			per: chunks.length,
			run() {
				const events = createChatEvents(head, true);
				let bytes = 0;
				for (const chunk of chunks) bytes += events.chunks([chunk]).length;
				return bytes;
			},
		},
	];
}
