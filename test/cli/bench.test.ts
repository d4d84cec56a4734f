import { describe, expect, test } from "bun:test";
import { untilEnd } from "../support/at-end.ts";
import { chatModel, withService } from "../support/service.ts";
import { reply, startUpstream } from "../support/upstream-server.ts";
import { runCli } from "./run-cli.ts";
import { runHere } from "./run-here.ts";

interface Told {
	readonly steps: readonly {
		clients: number;
		answered: number;
		refused: Record<string, number>;
		completionTokens: number;
		costUsd: string;
		firstMs: { p50: number | null };
	}[];
	readonly costUsd: string;
	readonly verdict: string;
}

const upstream = untilEnd(startUpstream({ dialect: "vllm" }));
// A model takes its time: without it a step of a second is a second of all processors for thousands of answers.
const ANSWER_MS = 100;
upstream.always(() => reply().text("one two three").delay(ANSWER_MS));
const service = await withService({
	models: `${chatModel({ url: upstream.url, dialect: "vllm" })}\n${chatModel({ id: "narrow", url: upstream.url, dialect: "vllm" })}
        max_concurrency: 1\n${chatModel({ id: "dead", url: "http://127.0.0.1:9/v1", dialect: "vllm" })}`,
	limits: "  queue_length: 0",
});
const { secret, accountId } = await service.customer();
const env = { TOLLGATE_API_KEY: secret, TOLLGATE_URL: `${service.url}/v1` };
const bench = (args: readonly string[], key = secret) => runCli(["bench", ...args], { ...env, TOLLGATE_API_KEY: key });
async function charged(): Promise<{ requests: number; nano: number }> {
	await service.settled();
	const rows = (await service.usage(accountId)).filter((row) => Number(row.charged_nano_usd) > 0);
	return { requests: rows.length, nano: rows.reduce((sum, row) => sum + Number(row.charged_nano_usd), 0) };
}

describe("tollgate bench", () => {
	test("counts what is answered, and its cost is what the books charged, whole and streamed", async () => {
		for (const more of [[], ["--stream"]]) {
			const before = await charged();
			const result = await bench(["test-model", "--clients", "1,3", "--seconds", "1", "--json", ...more]);
			expect([result.exitCode, result.stderr]).toEqual([0, ""]);
			const { steps, costUsd } = result.json<Told>();
			const after = await charged();
			expect(steps.map(({ clients }) => clients)).toEqual([1, 3]);
			expect(steps.reduce((sum, { answered }) => sum + answered, 0)).toBe(after.requests - before.requests);
			expect(Math.round(Number(costUsd) * 1e9)).toBe(after.nano - before.nano);
			expect(steps.every(({ completionTokens, firstMs }) => completionTokens > 0 && (firstMs.p50 ?? 0) > 0)).toBe(true);
			expect(steps.map(({ refused }) => refused)).toEqual([{}, {}]);
		}
	}, 30_000);

	test("ends when it has cost what it may", async () => {
		const before = await charged();
		const result = await bench(["test-model", "--clients", "2", "--seconds", "20", "--max-usd", "0.0005", "--json"]);
		const { nano } = await charged();
		expect(nano - before.nano).toBeGreaterThanOrEqual(500_000);
		// What was under way when it was reached, one of each client.
		expect(nano - before.nano).toBeLessThan(500_000 + 2 * 300_000);
		expect(result.exitCode).toBe(0);
	}, 30_000);

	test("says which limit is the wall, and as text what it cost", async () => {
		const told = await bench(["narrow", "--clients", "2", "--seconds", "1"]);
		expect(told.stdout).toContain("The wall is a limit");
		expect(told.stdout).toMatch(/\d+ × (overloaded|rate_limit_exceeded)/);
		expect(told.stdout).toMatch(/It cost USD 0\.\d+/);
	}, 30_000);

	test("where nobody is, that is said before anything is asked; what answers nothing is not asked by more clients", async () => {
		const nobody = "http://127.0.0.1:9";
		const away = await runCli(["bench", "m"], { TOLLGATE_API_KEY: secret, TOLLGATE_URL: nobody });
		expect([away.exitCode, away.stdout]).toEqual([1, ""]);
		expect(away.stderr).toContain(`Nobody answers at ${nobody} (`);
		const dead = await bench(["dead", "--clients", "1,2,4", "--seconds", "1", "--json"]);
		expect([dead.exitCode, dead.json<Told>().steps.length]).toEqual([1, 1]);
	}, 30_000);

	test("a key that is none, a model that is none and a wrong option are told as that", async () => {
		const refused = await bench(["test-model", "--seconds", "1", "--clients", "1"], "sk_service_no");
		expect([refused.exitCode, refused.stderr.includes("invalid_api_key")]).toEqual([1, true]);
		const unknown = await bench(["nothing", "--seconds", "1", "--clients", "1"]);
		expect([unknown.exitCode, unknown.stderr.includes("model_not_found")]).toEqual([1, true]);
		for (const wrong of [
			["--clients", "0"],
			["--clients", "a"],
			["--seconds", "0"],
			["--max-usd", "many"],
		])
			expect((await runHere(["bench", "test-model", ...wrong], env)).exitCode).toBe(2);
	}, 30_000);
});
