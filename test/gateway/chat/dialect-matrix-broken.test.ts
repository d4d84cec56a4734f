import { describe, expect } from "bun:test";
import {
	deliveredCharge,
	dialectMatrix,
	disconnectWhen,
	expectCharge,
	expectFree,
	streamedEvents,
} from "../../support/dialect-cells.ts";
import { type Reply, reply } from "../../support/upstream-reply.ts";
import { waitFor } from "../../support/wait.ts";

/** Runs every dialect through the whole service with answers that break off, at the server or at the client. */

const UNBROKEN = "  breaker_failures_in_row: 1000\n  breaker_failure_share: 1";
const matrix = await dialectMatrix(UNBROKEN);
/**
 * A service with short timeouts, used only for silent servers: on a busy machine any server may be silent for seconds.
 */
const impatient = await dialectMatrix(`  silence_s: 3\n  first_event_s: 3\n${UNBROKEN}`, { ahead: true });
/** Two events whose bytes would be estimated as more than two tokens. A failed stream must be charged two. */
const LONG_WORDS = "acknowledgement responsibilities";
/** `choices` of the usage event for a client that did not request usage. */
const EMPTY = [{ index: 0, delta: {}, finish_reason: null }];
const OUTPUT_TOKENS_MAX = 1_024;
const LEFT = { ending: "client_left", status: 499 };

describe("a client whose model server fails after the first token", () => {
	const died = { ending: "upstream_died", status: 502, code: "upstream_error" };
	const cases: [string, () => Reply, typeof died][] = [
		["an error event", () => reply().errorEvent(2), { ...died, ending: "upstream_failed" }],
		["a broken connection", () => reply().dieAfter(2), died],
		["an end without its end marker", () => reply().endAfter(2), died],
		["silence", () => reply().stallAfter(2), { ending: "upstream_silent", status: 504, code: "upstream_timeout" }],
	];
	for (const [at, [name, answer, { ending, status, code }]] of cases.entries())
		for (const includeUsage of [true, false])
			(name === "silence" ? impatient : matrix).cell(
				`gets ${code} and is charged after ${name}, usage ${includeUsage ? "" : "not "}requested`,
				async ({ send }) => {
					const more = { stream: true, ...(includeUsage ? { stream_options: { include_usage: true } } : {}) };
					const { client } = await send(more, answer().text(`${LONG_WORDS} ccc ddd`));
					return await client.ended();
				},
				(cell) => {
					// Ollama's stream ends without sending the error, so the gateway sees a stream that was cut off.
					const lost = cell.dialect === "ollama" && ending === "upstream_failed";
					const charge = deliveredCharge(cell.dialect, { counted: 2, estimated: 2 });
					expectCharge(cell, { ending: lost ? "upstream_died" : ending, status, ...charge });
					const events = streamedEvents(cell, includeUsage);
					expect(events.filter(({ error }) => error !== undefined)).toEqual([
						{ error: { message: expect.any(String), type: "server_error", param: null, code } },
					]);
					expect(events.at(-2)).toHaveProperty("error");
					expect(events.at(-1)?.choices).toEqual(includeUsage ? [] : EMPTY);
					const text = events.flatMap(({ choices }) =>
						((choices ?? []) as { delta: { content?: string } }[]).map(({ delta }) => delta.content ?? ""),
					);
					expect(text.join("")).toBe(LONG_WORDS);
				},
				at % 2 === Number(includeUsage) ? 0 : 1,
			);
});

describe("a client that disconnects from a chat", () => {
	for (const stream of [true, false])
		matrix.cell(
			`is charged nothing before the first token, ${stream ? "streamed" : "whole"}`,
			(place) => disconnectWhen(place, { stream }, reply().hang(), async () => {}),
			(cell) => {
				expectFree(cell, LEFT.ending, LEFT.status);
				expect(cell.acted.text).toBe("");
			},
			stream ? 0 : 1,
		);

	matrix.cell(
		"is charged at least the tokens read, and at most the tokens that the server sent",
		(place) => {
			const words = Array.from({ length: 400 }, () => " w");
			return disconnectWhen(place, { stream: true }, reply().text(words).trickle(2), (client) =>
				waitFor(() => seenWords(client.text()) >= 20, "twenty words"),
			);
		},
		(cell) => {
			const completion = Number(cell.rows[0]?.completion_tokens);
			expect(completion).toBeGreaterThanOrEqual(seenWords(cell.acted.text));
			expect(completion).toBeLessThanOrEqual(cell.acted.request.tokens.completion);
			expect(cell.acted.request.tokens.completion).toBeLessThan(400);
			expectCharge(cell, { ...LEFT, ...deliveredCharge(cell.dialect, { counted: completion, estimated: completion }) });
		},
	);

	matrix.cell(
		"is charged the delivered tokens while the model server is silent",
		(place) =>
			disconnectWhen(place, { stream: true }, reply().text("aaaa bbb ccc ddd").stallAfter(3), (client) =>
				client.until("ccc"),
			),
		(cell) => {
			expectCharge(cell, { ...LEFT, ...deliveredCharge(cell.dialect, { counted: 3, estimated: 3 }) });
		},
	);

	matrix.cell(
		"is charged the output that the gateway read while the client does not read",
		(place) => {
			const words = Array.from({ length: 3_000 }, () => "x".repeat(20_000));
			return disconnectWhen(place, { stream: true }, reply().text(words).trickle(0.01), async (client, request) => {
				// Disconnects only after the client has received output, because that output must be charged.
				await client.until("xxxx");
				client.stall();
				// Waits until the upstream server's output stops growing: the client's buffers are then full and the gateway
				// has stopped reading.
				let before = 0;
				for (let same = 0; same < 5; same = before > 0 && before === request.tokens.completion ? same + 1 : 0) {
					before = request.tokens.completion;
					await Bun.sleep(20);
				}
			});
		},
		(cell) => {
			const completion = Number(cell.rows[0]?.completion_tokens);
			const { tokens } = cell.acted.request;
			expect(tokens.completion).toBeLessThan(3_000);
			expect(completion).toBeGreaterThan(0);
			// The estimate by size of one such word already exceeds the reservation, so the whole reservation is charged.
			const charge = deliveredCharge(cell.dialect, { counted: completion, estimated: OUTPUT_TOKENS_MAX });
			if (charge.basis === "exact") expect(completion).toBeLessThanOrEqual(tokens.completion);
			expectCharge(cell, { ...LEFT, ...charge });
		},
		0,
	);
});

function seenWords(text: string): number {
	return text.match(/ w"/g)?.length ?? 0;
}
