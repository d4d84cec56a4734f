import { expect, test } from "bun:test";
import { createModelSpeeds } from "../../src/console/usage/model-speed.ts";
import { withDatabase } from "../support/database.ts";

import { foldAll, rebuildAllSums } from "../support/sums.ts";
import { createManualClock } from "../support/upstream-clock.ts";

const db = await withDatabase();

interface Answer {
	readonly model?: string;
	readonly ending?: string;
	readonly tokens?: number;
	readonly firstTokenMs: number | null;
	readonly durationMs: number;
	readonly agoH?: number;
}

async function settled({ model = "m", ending = "finished", tokens = 101, agoH = 0, ...times }: Answer): Promise<void> {
	await db.sql`
		insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, completion_tokens, first_token_ms, duration_ms, admitted_at)
		values (${crypto.randomUUID()}, 'acc', 'key', 'i', 1, ${model}, 'm@1', 'chat', true, 10, 10, 'exact', ${ending}, 200,
			${tokens}, ${times.firstTokenMs}, ${times.durationMs}, now() - make_interval(hours => ${agoH}))`;
}
const repeat = async (times: number, answer: Answer) => {
	for (let index = 0; index < times; index++) await settled(answer);
};

test("a model's speed is the median of the last day's streams, within 6 %", async () => {
	// 100 tokens in the 2 s after the first token are a rate of 50 tokens per second.
	await repeat(8, { firstTokenMs: 200, durationMs: 2_200 });
	await foldAll(db.statements);
	await repeat(7, { firstTokenMs: 200, durationMs: 2_200 });
	await repeat(5, { firstTokenMs: 5_000, durationMs: 105_000 });
	await repeat(4, { firstTokenMs: 1, durationMs: 2 });
	// These requests must not count: cut off, without a first token, older than a day, or too short for a rate.
	await repeat(30, { firstTokenMs: 9_000, durationMs: 9_001, ending: "client_left" });
	await repeat(30, { firstTokenMs: null, durationMs: 9_001 });
	await repeat(30, { firstTokenMs: 9_000, durationMs: 99_001, agoH: 30 });
	await repeat(30, { model: "short", firstTokenMs: 80, durationMs: 90, tokens: 15 });
	await repeat(19, { model: "rare", firstTokenMs: 80, durationMs: 9_000 });
	await foldAll(db.statements);
	await foldAll(db.statements);
	const speeds = await createModelSpeeds({ statements: db.statements, clock: createManualClock() }).current();
	expect([...speeds.keys()].sort()).toEqual(["m", "short"]);
	const { firstTokenMs = 0, tokensPerSecond, requests } = speeds.get("m") ?? {};
	expect(requests).toBe(24);
	expect(Math.abs(firstTokenMs / 200 - 1)).toBeLessThan(0.06);
	expect(Math.abs((tokensPerSecond ?? 0) / 50 - 1)).toBeLessThan(0.06);
	expect(speeds.get("short")?.tokensPerSecond).toBeNull();

	await rebuildAllSums(db.statements);
	expect(await createModelSpeeds({ statements: db.statements, clock: createManualClock() }).current()).toEqual(speeds);
}, 120_000);
