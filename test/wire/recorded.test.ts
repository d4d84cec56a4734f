import { describe, expect, test } from "bun:test";
import { FORWARDED_FIELDS } from "../../src/upstream/chat/answer-fields.ts";
import { LONG } from "../support/long-form.ts";
import { createPlayer, cutPositions } from "./play.ts";
import { type AssembledChoice, RECORDINGS, type Recording } from "./recording.ts";
import { withheldAt } from "./withheld-fields.ts";

/** Distance in bytes of the tested cuts; each recording tests a third of them. `run.ts` tests every byte. */
const EVERY = 41;
const sampleOf = (recording: Recording) =>
	cutPositions(recording, EVERY).filter((_, at) => LONG || at % 3 === RECORDINGS.indexOf(recording) % 3);

describe.each(RECORDINGS.map((recording) => [recording.name, recording] as const))(
	"the recorded answer %s",
	(_, recording) => {
		const { says, fails, bytes } = recording;

		test("is assembled completely from its recorded bytes", async () => {
			const player = createPlayer(recording);
			const { said, failed } = await player.play();
			expect(failed).toBe(fails as string);
			expect(said.choices).toEqual(fails === undefined ? [...says.choices] : said.choices);
			if (fails === undefined) expect(said).toEqual(says);
			else expect(said.choices.map(({ text }) => text)).toEqual(says.choices.map(({ text }) => text));
			await player.stop();
		});

		test("gives the same answer wherever its bytes are cut", async () => {
			const player = createPlayer(recording);
			const whole = await player.play();
			for (const cut of sampleOf(recording)) expect({ cut, ...(await player.play(cut)) }).toEqual({ cut, ...whole });
			await player.stop();
		});

		test("fails if it breaks off before the finish reason", async () => {
			const player = createPlayer(recording);
			const whole = await player.play();
			for (const end of sampleOf(recording)) {
				const { said, failed } = await player.play(0, end);
				// Once all finish reasons have arrived, only counts and sources may be missing.
				if (failed === undefined) expect({ end, choices: said.choices }).toEqual({ end, choices: whole.said.choices });
				else expect({ end, begins: begins(said.choices, whole.said.choices) }).toEqual({ end, begins: true });
			}
			expect(bytes.length).toBeLessThan(4_096);
			await player.stop();
		});
	},
);

function begins(part: readonly AssembledChoice[], whole: readonly AssembledChoice[]): boolean {
	return part.every(({ text }, index) => whole[index]?.text.startsWith(text));
}

test("the recordings cover every model server and every kind of ending", () => {
	expect(RECORDINGS.length).toBeGreaterThanOrEqual(60);
	expect(new Set(RECORDINGS.map(({ name }) => name)).size).toBe(RECORDINGS.length);
	const servers = new Set(RECORDINGS.map(({ name }) => name.split(":")[0]));
	for (const server of (
		"vLLM, SGLang, llama.cpp, llama-cpp-python, Ollama, TGI, LM Studio, LiteLLM, OpenRouter, Groq, xAI, Mistral, " +
		"DeepSeek, Together, Fireworks"
	).split(", "))
		expect([...servers]).toContain(server);
});

/** Paths of all fields that occur in the recordings. */
function fieldsOf(recordings: readonly Recording[]): Record<"answer" | "choice" | "message" | "toolCall", Set<string>> {
	type Json = Record<string, unknown>;
	const found = {
		answer: new Set<string>(),
		choice: new Set<string>(),
		message: new Set<string>(),
		toolCall: new Set<string>(),
	};
	const note = (place: keyof typeof found, value: unknown) => {
		for (const name of Object.keys((value ?? {}) as Json)) found[place].add(name);
	};
	for (const { bytes, endpoint } of recordings) {
		if (endpoint !== "chat") continue;
		for (const line of new TextDecoder().decode(bytes).split(/[\r\n]+/)) {
			const payload = /^data: ?(\{.*\})$/.exec(line)?.[1];
			if (payload === undefined) continue;
			const event = JSON.parse(payload) as Json;
			if (event.error !== undefined) continue;
			note("answer", event);
			for (const choice of (event.choices ?? []) as Json[]) {
				note("choice", choice);
				note("message", choice.delta);
				for (const call of ((choice.delta as Json).tool_calls ?? []) as Json[]) note("toolCall", call);
			}
		}
	}
	return found;
}

test("each field of real servers' answers is forwarded or withheld for a stated reason", () => {
	for (const [place, names] of Object.entries(fieldsOf(RECORDINGS))) {
		const [passed, withheld] = [FORWARDED_FIELDS[place as "answer"], withheldAt(place as "answer")];
		const decided = new Set([...Object.keys(passed), ...withheld]);
		expect({ place, undecided: [...names].filter((name) => !decided.has(name)) }).toEqual({ place, undecided: [] });
		expect(withheld.filter((name) => name in passed)).toEqual([]);
	}
});
