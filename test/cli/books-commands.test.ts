import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withCommands } from "./commands-world.ts";
import { runHere } from "./run-here.ts";

const { database, folder, env, run, newAccount } = await withCommands();

test("`reconcile` exits 0 if the books are sound and 1 otherwise", async () => {
	const sound = await run("ledger", "reconcile");
	expect(sound.json()).toMatchObject({ ok: true } as never);
	expect(sound.json().checks.length).toBeGreaterThan(5);
	const account = await newAccount();
	await database.sql`update budget set limit_nano_usd = 1 where id = ${account}`;
	const broken = await run("ledger", "reconcile");
	expect([broken.exitCode, broken.json().ok]).toEqual([1, false]);
	await database.sql`update budget set limit_nano_usd = 0 where id = ${account}`;
});

test("`ledger seals` lists sealed days in pages, newest first", async () => {
	expect((await run("ledger", "seals")).json().data).toEqual([]);
	await database.sql`
		insert into sealed_day (day, usage_rows, charged_nano_usd, usage_hash, entry_hash, seal, problem)
		select date '2026-01-01' + n, n, n * 1e9, '', '', decode(lpad(n::text, 64, '0'), 'hex'), case n when 1 then 'changed' end
		from generate_series(0, 2) n`;
	const pages = [await run("ledger", "seals", "--limit", "2"), await run("ledger", "seals", "--after", "2026-01-02")];
	expect(pages.map((page) => page.json())).toMatchObject([
		{
			next: "2026-01-02",
			data: [
				{ day: "2026-01-03", requests: 2, charged_usd: "2.00", seal: `${"0".repeat(63)}2`, problem: null },
				{ day: "2026-01-02", problem: "changed" },
			],
		},
		{ next: null, data: [{ day: "2026-01-01" }] },
	]);
	expect((await run("ledger", "seals", "--after", "yesterday")).exitCode).toBe(1);
	await database.sql`delete from sealed_day`;
});

test("`ledger archive` archives sealed days; a changed archive fails verification", async () => {
	const archive = join(folder, "archive");
	expect((await run("ledger", "archive", archive)).json().days).toEqual([]);
	expect((await run("ledger", "verify", archive)).exitCode).toBe(1);
	await database.sql`
		insert into sealed_day (day, usage_hash, entry_hash, seal)
		select s.day, s.usage_hash, s.entry_hash, books_seal_of(s, null) from (
			select (jsonb_populate_record(null::sealed_day, '{"day": "2000-01-01", "usage_rows": 0, "charged_nano_usd": 0,
				"written_off_nano_usd": 0, "usage_hash": "", "entry_rows": 0, "top_up_nano_usd": 0, "refund_nano_usd": 0,
				"adjustment_nano_usd": 0, "dispute_nano_usd": 0, "credit_note_nano_usd": 0, "entry_hash": "",
				"granted_nano_usd": 0, "returned_nano_usd": 0}')).* ) s`;
	expect((await run("ledger", "archive", archive)).json().days).toEqual(["2000-01-01"]);
	const sound = await run("ledger", "verify", archive);
	const { ok, newest_seal } = sound.json();
	expect([sound.exitCode, ok]).toEqual([0, true]);
	expect((await run("ledger", "verify", archive, "--seal", newest_seal)).exitCode).toBe(0);
	expect((await run("ledger", "verify", archive, "--seal", "0".repeat(64))).exitCode).toBe(1);
	const path = join(archive, "usage-2000-01-01.parquet");
	expect((await run("ledger", "verify", path)).exitCode).toBe(0);
	writeFileSync(path, "no Parquet");
	const broken = await run("ledger", "verify", path);
	expect([broken.exitCode, broken.json().ok]).toEqual([1, false]);
	await database.sql`delete from sealed_day`;
});

test("`catalog check` needs neither a database nor a configuration", async () => {
	const good = join(folder, "good.yaml");
	writeFileSync(
		good,
		"models:\n  - id: m\n    kind: chat\n    context_length: 1000\n    max_output_tokens: 100\n    rates: { input: '1', output: '2' }\n    upstreams:\n      - { url: 'http://127.0.0.1:1/v1', model: m, dialect: openai }\n",
	);
	const bad = join(folder, "bad.yaml");
	writeFileSync(bad, "models:\n  - id: m\n    colour: red\n");
	const broken = { NODE_ENV: "production", PORT: "x" };
	const [checked, refused, missing, shown] = await Promise.all([
		runHere(["catalog", "check", good, "--json"], broken),
		runHere(["catalog", "check", bad, "--json"], broken),
		runHere(["catalog", "check", join(folder, "none.yaml")], broken),
		runHere(["catalog", "show", "--json"], { ...env, CONFIG: good }),
	]);
	expect(checked.json()).toMatchObject({ ok: true, models: [{ id: "m", rates: { input: "1", output: "2" } }] });
	expect(refused.exitCode).toBe(1);
	expect(refused.json().problems).toContainEqual(expect.objectContaining({ line: 3 }));
	expect(missing.exitCode).toBe(1);
	expect(shown.json()).toMatchObject({ ok: true, models: [{ id: "m" }] });
});

test("`ledger journal` lists closed months and prints one as CSV", async () => {
	const entries = [{ about: "Usage", debit: "2000", credit: "4000", model: "m", nanoUsd: "1500000000" }];
	await database.sql`
		insert into journal_month (month, deferred_nano_usd, promotional_nano_usd, entries)
		values ('2026-01-01', 7000000000, 0, ${JSON.stringify(entries)}::text::jsonb)`;
	expect((await run("ledger", "journal")).json().data).toMatchObject([
		{ month: "2026-01", deferred_usd: "7.00", promotional_usd: "0.00" },
	]);
	const csv = (await runHere(["ledger", "journal", "2026-01"], env)).stdout;
	expect(csv).toContain("2026-01,1,2000,Deferred revenue,m,1.50,,Usage\n2026-01,1,4000,Revenue,m,,1.50,Usage");
	expect((await run("ledger", "journal", "2026-01")).json().lines).toMatchObject([
		{ entry: 1, account: "2000", account_name: "Deferred revenue", debit_usd: "1.50", credit_usd: null },
		{ entry: 1, account: "4000", debit_usd: null, credit_usd: "1.50", description: "Usage" },
	]);
	expect((await run("ledger", "journal", "2026-02")).exitCode).toBe(1);
});
