/**
 * Events of a request in any order, several of them in one turn of the event loop: the request settles once, for the
 * delivered output.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { chat } from "../../../src/gateway/chat/chat-request.ts";
import { serveRequest } from "../../../src/gateway/serve/serve.ts";
import { READER_STALL_MS } from "../../../src/gateway/serve/streaming.ts";
import { UpstreamFailure } from "../../../src/upstream/call/failure.ts";
import type { Road, ScriptedCall, TextReader } from "../../support/road.ts";
import { costOf, createRoad, fakeRequest, NOTHING_LEFT, nextTurn, OUTPUT_RATE, readerOf } from "../../support/road.ts";

const HOLD_MS = 500;
/** The character to count in a stream as one word; it occurs nowhere else. */
const WORD = "~";
/** Text that is larger than the buffers of a slow client's connection. */
const LONG = "w".repeat(128 * 1024);

/** Events of a scenario. The next event follows in the same turn of the event loop or in a later turn. */
const EVENTS = [
	"word",
	"words",
	"long word",
	"end",
	"die",
	"leave",
	"cancel",
	"stop",
	"read",
	"tick",
	"others wait",
	"sync",
	"syncs fail",
	"disk breaks",
] as const;
type What = (typeof EVENTS)[number];
interface Happening {
	readonly what: What;
	readonly turnEnds: boolean;
}
interface Scene {
	readonly stream: boolean;
	readonly host: boolean;
	readonly isDurable: boolean;
	readonly counts: boolean;
	readonly isDeaf: boolean;
	readonly events: readonly Happening[];
}

const scenes: fc.Arbitrary<Scene> = fc.record({
	stream: fc.boolean(),
	host: fc.boolean(),
	isDurable: fc.boolean(),
	counts: fc.boolean(),
	isDeaf: fc.boolean(),
	events: fc.array(fc.record({ what: fc.constantFrom(...EVENTS), turnEnds: fc.boolean() }), { maxLength: 14 }),
});

/** A client that reads on demand and keeps the text that it received. */
function createClient(answer: Promise<Response>) {
	let reader: TextReader | undefined;
	let cancelled = false;
	const client = { status: 0, text: "", ended: false, read, cancel };
	void answer.then((response) => {
		client.status = response.status;
		reader = readerOf(response);
		if (cancelled) void reader.cancel().catch(() => {});
		// Starts to read the response's body immediately, as an HTTP server does.
		else void read();
	});
	async function read(): Promise<void> {
		const { done, value } = (await reader?.read().catch(() => undefined)) ?? { done: false, value: undefined };
		if (value !== undefined) client.text += value;
		if (done) client.ended = true;
	}
	async function cancel(): Promise<void> {
		cancelled = true;
		await reader?.cancel().catch(() => {});
	}
	return client;
}

function happen(
	what: What,
	road: Road,
	call: ScriptedCall,
	client: ReturnType<typeof createClient>,
	leave: () => void,
) {
	switch (what) {
		case "word":
			return call.arrive(WORD);
		case "words":
			return call.arrive(...Array.from({ length: 90 }, () => WORD));
		case "long word":
			return call.arrive(LONG);
		case "end":
			call.end();
			return call.reply(call.tokens);
		case "die":
			return call.fail(new UpstreamFailure("died", { private: "scripted" }));
		case "leave":
			return leave();
		case "cancel":
			return void client.cancel();
		case "stop":
			return road.openStreams.shutDown();
		case "read":
			return void client.read();
		case "tick":
			return road.clock.advance(HOLD_MS);
		case "others wait":
			road.contend(true);
			return road.clock.advance(READER_STALL_MS + 1_000);
		case "sync":
			for (const { resolve } of road.journal.syncs.splice(0)) resolve();
			return;
		case "syncs fail":
			for (const { reject } of road.journal.syncs.splice(0)) reject(new Error("scripted"));
			return;
		case "disk breaks":
			road.journal.isBroken = true;
	}
}

async function play({ stream, host, isDurable, counts, isDeaf, events }: Scene) {
	const road = createRoad({ mode: host ? "host" : "process", holdStatusMs: HOLD_MS });
	const { connection, leave } = fakeRequest({ stream, max_tokens: 1_000 });
	const answer = serveRequest(road.deps, chat, connection);
	const client = createClient(answer);
	const call = await road.call();
	Object.assign(call, { counts, isDeaf });
	road.journal.isDurable = isDurable;
	for (const { what, turnEnds } of events) {
		happen(what, road, call, client, leave);
		if (turnEnds) await nextTurn();
		expect(road.settled.length).toBeLessThanOrEqual(1);
	}
	// Completes all pending journal writes and disconnects the client if it is still connected.
	road.journal.isDurable = true;
	for (const { resolve } of road.journal.syncs.splice(0)) resolve();
	await nextTurn();
	leave();
	if (isDeaf) call.fail(new UpstreamFailure("timeout", { private: "scripted" }));
	road.clock.advance(HOLD_MS);
	await answer;
	await nextTurn();
	return { road, client, call };
}

/** Expects one settlement, no remaining hold, and all output charged and recorded. Returns the request's ending. */
async function check(scene: Scene): Promise<string> {
	const { road, client, call } = await play(scene);
	const [event, ...more] = road.settled;
	if (event === undefined) throw new Error("never settled");
	expect(more).toEqual([]);
	// If the journal's disk is broken, the charge stays held until Postgres has stored the settlement.
	if (!road.journal.isBroken) expect(road.leftovers()).toEqual(NOTHING_LEFT);
	else expect(road.leftovers()).toMatchObject({ running: 0, ofKey: 0, streams: 0 });

	// The refusal log contains only requests without a usage row.
	expect(road.refused).toEqual([]);
	const saysSo = road.logged.filter((line) => line === "a stream ended early").length;
	const gaveUp = event.ending === "client_left" && saysSo > 0;
	const wasCutShort = gaveUp || (event.ending !== "finished" && event.ending !== "client_left");
	expect(saysSo).toBe(scene.stream && client.status === 200 && wasCutShort ? 1 : 0);
	if (event.ending === "client_left" || event.ending === "shutdown") expect(call.isHungUp).toBe(true);

	const delivered = client.text.split(WORD).length - 1;
	const charged = Number(event.charged);
	if (scene.stream) {
		const bound = Number(road.journal.progress.at(-1)?.bound ?? 0);
		expect(delivered * OUTPUT_RATE).toBeLessThanOrEqual(bound);
		// The server's count includes output that the client never got. An estimate covers only output in the journal.
		if (event.basis === "estimated") expect(charged).toBeLessThanOrEqual(bound);
	}
	if (event.basis === "exact" && charged > 0) {
		expect(charged).toBe(costOf(event.completionTokens));
		expect(event.completionTokens).toBeGreaterThanOrEqual(delivered);
		expect(event.completionTokens).toBeLessThanOrEqual(call.tokens);
	} else if (charged === 0) expect(delivered).toBe(0);
	if (client.status === 200 && !scene.stream) expect([event.ending, charged > 0]).toEqual(["finished", true]);
	return `${scene.stream ? "streamed" : "whole"} ${gaveUp ? "gave its place up" : event.ending}`;
}

test("a request settles once for the delivered output in any sequence of events", () =>
	fc.assert(
		fc.asyncProperty(scenes, async (scene) => void (await check(scene))),
		{ numRuns: 300 },
	));

test("the random scenarios of this file reach every kind of ending", async () => {
	const endings = new Set<string>();
	for (const scene of fc.sample(scenes, { seed: 7, numRuns: 1_000 })) endings.add(await check(scene));
	expect([...endings].sort()).toEqual([
		"streamed client_left",
		"streamed finished",
		"streamed gave its place up",
		"streamed shutdown",
		"streamed upstream_died",
		"streamed upstream_failed",
		"whole client_left",
		"whole finished",
		"whole upstream_died",
		"whole upstream_silent",
	]);
});
