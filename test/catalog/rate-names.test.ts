/** Seven different prices show that no rate is renamed or swapped where the catalogue is shown or stored. */
import { describe, expect, test } from "bun:test";
import { checkCatalog, formatCatalogCheck } from "../../src/catalog/file.ts";
import type { RateCard, Rates } from "../../src/catalog/model.ts";
import { openRouterPricing, pinRateCards } from "../../src/catalog/rate-cards.ts";
import { requestDetail } from "../../src/console/log/log-page.ts";
import { findRequest } from "../../src/console/log/request-log.ts";
import { publicRates } from "../../src/console/public-routes.ts";
import { createAccount } from "../../src/keys/account-admin.ts";
import { createKey } from "../../src/keys/key-admin.ts";
import { createDigest } from "../../src/keys/secret.ts";
import type { PicoUsdPerUnit } from "../../src/money/nano-usd.ts";
import { runHere } from "../cli/run-here.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { EVERY_RATE } from "../support/every-rate.ts";

const { statements, url } = await withDatabase();

await pinRateCards(statements, [{ id: "m", rates: EVERY_RATE }]);

test("the price lists for customers and for operators have a label for every rate", () => {
	const card: RateCard = { id: "m@1", version: 1, ...EVERY_RATE };
	expect(openRouterPricing([card])).toEqual({
		prompt: "0.000001",
		input_cache_read: "0.000002",
		completion: "0.000003",
		request: "0.000004",
		image: "0.000005",
		audio_second: "0.000006",
		search: "0.000007",
	});
	expect(publicRates(card)).toEqual(EVERY_RATE);
});

test("`catalog check` prints every rate with its name", () => {
	const model = (kind: string, given: string) => `  - id: ${kind}
    kind: ${kind}
    context_length: 8192
    ${kind === "chat" ? "max_output_tokens: 1024" : ""}
    rates: { ${given} }
    upstreams: [{ url: "http://127.0.0.1:8000/v1", model: m, dialect: openai }]`;
	const text = [
		"models:",
		model("chat", 'input: "1", cached_input: "2", output: "3", request: "4", image: "5"'),
		model("transcription", 'audio_second: "6"'),
		model("rerank", 'search: "7"'),
	].join("\n");
	const check = checkCatalog(text, {});
	expect(check.ok && check.models.map((each) => each.rates)).toEqual([
		{ input: "1", cached_input: "2", output: "3", request: "4", image: "5" },
		{ audio_second: "6" },
		{ search: "7" },
	]);
	expect(formatCatalogCheck(check)).toContain(
		"chat, 1 replica): input 1, cached_input 2, output 3, request 4, image 5",
	);
});

test("`catalog rates` prints every rate with its name", async () => {
	const free = 0 as PicoUsdPerUnit;
	await pinRateCards(statements, [{ id: "painter", rates: { ...EVERY_RATE, audioSecond: free, search: free } }]);
	const secret = "s".repeat(32);
	const env = { DATABASE_URL: url, DATA_DIR: temporaryFolder(), KEY_PEPPER: secret, CONSOLE_SECRET: secret };
	const shown = (await runHere(["catalog", "show", "m", "--json"], env)).json();
	expect(shown.rate_cards).toMatchObject([
		{
			...{ rate_card: "m@1", input: "1", cached_input: "2", output: "3" },
			...{ request: "0.000004", image: "0.000005", audio_second: "0.000006", search: "0.000007" },
		},
	]);
	const [head = "", line = ""] = (await runHere(["catalog", "show", "painter"], env)).stdout.split("\n");
	expect(head).toMatch(/^RATE CARD +SINCE +INPUT +CACHED INPUT +OUTPUT +REQUEST +IMAGE$/);
	expect(line).toMatch(/^painter@1 +\S+Z +1 +2 +3 +0\.000004 +0\.000005$/);
});

describe("a bill names the rate of each line", () => {
	const line = (name: string, units: number, unit: string) => ({
		name,
		units,
		unit,
		rate: EVERY_RATE[name as keyof Rates],
	});
	const tokens = [line("input", 8, "token"), line("cachedInput", 2, "token"), line("output", 3, "token")];
	test.each([
		["chat", []],
		["image", [line("image", 11, "image")]],
		["transcription", [line("audioSecond", 11, "second")]],
		["rerank", [line("search", 11, "search")]],
	])("for the endpoint %s", async (endpoint, own) => {
		const account = await createAccount(statements, { email: `${endpoint}@example.com`, vouched: true });
		const maker = { statements, digest: createDigest("pepper"), serviceName: "service" };
		const key = await createKey(maker, account.id, { name: "k" });
		const id = crypto.randomUUID();
		await statements`
			insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
				reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, cached_tokens, completion_tokens, units,
				admitted_at)
			values (${id}::uuid, ${account.id}, ${key.id}, 'i', 1, 'm', 'm@1', ${endpoint}, false, 10, 10, 'exact', 'finished', 200,
				10, 2, 3, ${own.length === 0 ? 0 : 11}::integer, now())`;
		const row = await findRequest(statements, account.id, id);
		const { lines } = await requestDetail(statements, row as NonNullable<typeof row>);
		expect(lines).toEqual([...tokens, line("request", 1, "request"), ...own] as never);
	});
});
