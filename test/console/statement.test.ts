/** A monthly statement adds up to the nano-dollar, never changes once closed, and each of its lines is in the log. */
import { expect, spyOn, test } from "bun:test";
import { getDocument } from "pdfjs-dist/legacy/build/pdf.mjs";
import { systemClock } from "../../src/base/clock.ts";
import { server } from "../../src/base/de.json";
import { nextTurn } from "../../src/base/time-slice.ts";
import { createPdfQueue } from "../../src/console/statement/pdf-queue.ts";
import { closeMonths, listMonths, readStatement } from "../../src/console/statement/statement.ts";
import { type DocumentDetails, statementDocument } from "../../src/console/statement/statement-document.ts";
import { statementCsv, statementLines } from "../../src/console/statement/statement-lines.ts";
import { statementPdf } from "../../src/console/statement/statement-pdf.ts";
import { statementPage } from "../../src/console/statement/statement-routes.ts";
import { foldUsage } from "../../src/console/usage/usage-fold.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { withDatabase } from "../support/database.ts";
import { statementsWithFixedNow } from "../support/fixed-now.ts";
import { spyOnSlowClock } from "../support/slow-clock.ts";
import { foldAll, rebuildAllSums } from "../support/sums.ts";

const db = await withDatabase();
const ID = "acc_books";
const ORIGIN = "https://models.example";
const NOBODY = { company: "", address: "", vatId: "" };
/** A fixed date, so that the month does not end during the test. */
const now = new Date();
const asked = await statementsWithFixedNow(db, now.getTime());
/** The three months before the present month, and the present month. */
const months = [3, 2, 1, 0].map((back) =>
	new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
);
const [first = "", second = "", third = "", present = ""] = months;

await db.sql`insert into account (id, email, name, created_at) values (${ID}, 'b@example.com', 'Books', ${`${first}-05T00:00:00Z`})`;
await db.sql`insert into budget (id, kind, account_id, limit_nano_usd) values (${ID}, 'account', ${ID}, 0)`;
await book("top_up", 250_000_000_000n, `${first}-05T10:00:00Z`, "topup:top_1");
await book("credit_note", 123_456_789n, `${second}-01T00:00:00Z`, "note:1");
await book("refund", -50_000_000_001n, `${third}-01T00:00:00Z`, "refund:1");
await book("top_up", 100_000_000_000n, `${present}-01T00:00:00Z`, "topup:top_2");
for (const [at, charged] of [
	[`${first}-05T10:00:00Z`, 7],
	[`${first}-28T23:59:59.999Z`, 1_000_000_007],
	[`${second}-01T00:00:00Z`, 3_333_333_333],
	[`${second}-15T12:00:00Z`, 12_345_678_901],
	[`${third}-28T23:00:00Z`, 1],
	[`${present}-01T00:00:00Z`, 500_000_000],
] as const)
	await use(at, charged);
await foldAll(db.statements);

async function book(kind: string, amount: bigint, at: string, source: string): Promise<void> {
	await db.sql`insert into ledger_entry (id, account_id, kind, amount_nano_usd, source_ref, actor, note, created_at)
		values (${`led_${source}`}, ${ID}, ${kind}, ${String(amount)}, ${source}, 'test', ${`about ${source}`}, ${at})`;
	await db.sql`update budget set limit_nano_usd = limit_nano_usd + ${String(amount)} where id = ${ID}`;
}

async function use(at: string, charged: number, model = "m-1", project: string | null = null): Promise<void> {
	await db.sql`insert into usage_event (request_id, account_id, key_id, instance_id, epoch, model, rate_card_id, endpoint, streamed,
			reserved_nano_usd, charged_nano_usd, basis, ending, status, prompt_tokens, completion_tokens, admitted_at, settled_at, project_id)
		values (gen_random_uuid(), ${ID}, 'key_1', 'i', 1, ${model}, 'r', 'chat', false, ${charged}, ${charged}, 'exact', 'finished', 200, 5, 6, ${at}, clock_timestamp(), ${project})`;
	await db.sql`insert into lease (budget_id, instance_id, epoch, granted_nano_usd, settled_nano_usd, state) values (${ID}, 'i', 1, ${charged}, ${charged}, 'closed')
		on conflict (budget_id, instance_id, epoch) do update set granted_nano_usd = lease.granted_nano_usd + ${charged}, settled_nano_usd = lease.settled_nano_usd + ${charged}`;
}

/** Marks all days before `day` as sealed. */
async function sealedUntil(day: string): Promise<void> {
	await db.sql`insert into seal_cursor (id, day, entries_from, closed_until, usage_at, usage_id, usage_hash, op_at, op_id)
		values (1, ${day}, now(), now(), now(), gen_random_uuid(), '', now(), gen_random_uuid())
		on conflict (id) do update set day = ${day}`;
}

const read = (month: string) => readStatement(asked, ID, month);
const place = { origin: ORIGIN, accountId: ID };

test("a monthly statement opens with the closing balance of the month before", async () => {
	let before = 0n;
	for (const month of months) {
		const statement = await read(month);
		expect(statement.openingNanoUsd).toBe(before);
		const sum = statementLines(statement, place).reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
		expect(statement.openingNanoUsd + sum).toBe(statement.closingNanoUsd);
		before = statement.closingNanoUsd;
	}
	expect(before).toBe(BigInt((await accountBalance(db.statements, ID)).balance));
	expect((await read(first)).closingNanoUsd).toBe(250_000_000_000n - 1_000_000_014n);
	expect((await read(present)).state).toBe("running");
	expect((await listMonths(asked, ID)).map(({ month }) => month)).toEqual(months.toReversed());
});

test("a closed statement never changes, and late usage belongs to a later month", async () => {
	await sealedUntil(`${third}-01`);
	// Eight requests close the months at the same time.
	await Promise.all(Array.from({ length: 8 }, () => closeMonths(asked, [ID])));
	expect((await listMonths(asked, ID)).map(({ state }) => state)).toEqual(["running", "over", "closed", "closed"]);
	const before = { first: await read(first), second: await read(second) };
	await use(`${first}-20T00:00:00Z`, 77);
	await use(`${second}-20T00:00:00Z`, 5);
	await foldAll(db.statements);
	const after = { first: await read(first), second: await read(second), third: await read(third) };
	expect(after.first.closingNanoUsd).toBe(before.first.closingNanoUsd);
	expect(after.first.usageNanoUsd).toBe(before.first.usageNanoUsd);
	expect(after.first.laterNanoUsd).toBe(77n);
	expect(after.second.openingNanoUsd).toBe(after.first.closingNanoUsd);
	expect(after.third.lateNanoUsd).toBe(82n);
	expect(after.third.openingNanoUsd).toBe(after.second.closingNanoUsd);
	// The lines add up to the closing balance, even with late settlements in a later month.
	for (const statement of Object.values(after)) {
		const sum = statementLines(statement, place).reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
		expect(statement.openingNanoUsd + sum).toBe(statement.closingNanoUsd);
	}
	// The closing balance of the third month contains the late settlement, so the present month must not list it.
	await sealedUntil(`${present}-01`);
	const closed = await read(third);
	expect(closed).toEqual({ ...after.third, state: "closed" });
	expect((await read(present)).lateNanoUsd).toBe(0n);
	expect((await read(present)).closingNanoUsd).toBe(BigInt((await accountBalance(db.statements, ID)).balance));
});

test("a statement of a month whose requests were deleted uses the usage sums", async () => {
	const before = await read(second);
	const moment = `${third}-01T00:00:00Z`;
	await db.sql`insert into removal (id, usage_before, usage_frozen) values (1, ${moment}, ${moment})
		on conflict (id) do update set usage_before = excluded.usage_before, usage_frozen = excluded.usage_frozen`;
	await db.sql`delete from usage_event where admitted_at < ${moment}`;
	await rebuildAllSums(db.statements);
	await foldUsage(db.statements);
	expect(await read(second)).toEqual(before);
	expect(before.usage.length).toBeGreaterThan(0);
});

test("the CSV of a statement has each movement with its balance and link", async () => {
	const statement = await read(second);
	const rows = statementCsv(statement, statementLines(statement, place)).trimEnd().split("\r\n");
	expect(rows[1]).toBe(`${second}-01,opening_balance,,,,,,248.999999986,,,`);
	expect(rows[2]).toBe(
		`${second}-01,credit_note,about note:1,,,,0.123456789,249.123456775,${ORIGIN}/credit?account=${ID},,`,
	);
	const from = Date.parse(`${second}-01T00:00:00Z`);
	expect(rows[3]).toBe(
		`${second}-01,usage,m-1,1,5,6,-3.333333333,245.790123442,${ORIGIN}/requests?from=${from}&to=${from + 86_400_000}&model=m-1&account=${ID},,`,
	);
	expect(rows.at(-2)).toContain("recorded_later");
	expect(rows.at(-1)).toMatch(new RegExp(`^${second}-\\d\\d,closing_balance,,,,,,233\\.444444541,,,$`));
	const receipt = statementLines(await read(present), place).find(({ kind }) => kind === "top_up");
	expect(receipt?.url).toBe(`${ORIGIN}/api/console/credit/receipts/top_2?account=${ID}`);
});

test("a statement lists usage by project, adding up to the month's usage", async () => {
	const before = await read(present);
	await db.sql`insert into project (id, account_id, name) values ('proj_s', ${ID}, 'Search, "=1"')`;
	await use(`${present}-01T00:00:00Z`, 300, "m-1", "proj_s");
	await use(`${present}-01T00:00:00Z`, 4, "m-2", "proj_s");
	await foldAll(db.statements);
	const statement = await read(present);
	expect(statement.usageNanoUsd).toBe(before.usageNanoUsd + 304n);
	expect(statement.usage.map((used) => [used.model, used.projectId, used.chargedNanoUsd])).toEqual([
		["m-1", "", 500_000_000n],
		["m-1", "proj_s", 300n],
		["m-2", "proj_s", 4n],
	]);
	const lines = statementLines(statement, place);
	const sum = lines.reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
	expect(statement.openingNanoUsd + sum).toBe(statement.closingNanoUsd);
	const csv = statementCsv(statement, lines);
	expect(csv).toContain(`&model=m-2&project=proj_s&account=${ID},proj_s,"Search, ""=1"""`);
	expect(csv).toContain(`&model=m-1&project=none&account=${ID},,`);
	const document = documentOf({ statement, lines, logUrl: ({ project }) => `${ORIGIN}/${project ?? "all"}` });
	const { text, links } = await pdfOf(await statementPdf(document));
	for (const shown of ["Usage by project", 'Search, "=1"', "No project", "0.000000304"]) expect(text).toContain(shown);
	expect(links).toEqual(expect.arrayContaining([`${ORIGIN}/proj_s`, `${ORIGIN}/none`]));
});

test("a statement sums the movements beyond the limit in one line", async () => {
	const statement = await read(second);
	const lines = statementLines({ ...statement, entries: [] }, place);
	expect(lines.filter(({ kind }) => kind === "more").map(({ amountNanoUsd }) => amountNanoUsd)).toEqual([123_456_789n]);
	const sum = lines.reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
	expect(statement.openingNanoUsd + sum).toBe(statement.closingNanoUsd);
});

test("a statement of a missing, malformed or too early month is refused", async () => {
	for (const month of ["", "2026-13", "2026-1", "x", "2026-11-01", "'; --"])
		await expect(read(month)).rejects.toThrow("`month` must be a month");
	await expect(read("2020-01")).rejects.toThrow("There is no statement");
	await expect(read("2099-01")).rejects.toThrow("There is no statement");
});

function documentOf({ statement, ...facts }: Pick<DocumentDetails, "statement"> & Partial<DocumentDetails>) {
	return statementDocument({
		...{ statement, lines: statementLines(statement, place), language: "en", serviceName: "Acme" },
		...{ seller: NOBODY, buyer: NOBODY, account: { id: ID, name: "Books", email: "b@example.com" } },
		logUrl: () => `${ORIGIN}/requests`,
		...facts,
	});
}

const DRAWN = [
	"Müller & Söhne GmbH, Łódź, Dvořák",
	"Ελληνική Εταιρεία, ἀρχή",
	"Общество «Ёлка», Київ",
	"Công ty Hữu hạn",
];
const SELLER = { company: "Acme GmbH", address: "Weg 1\n1010 Wien", vatId: "ATU12345678" };

test("the PDF of a statement has Latin, Greek and Cyrillic names, amounts and links", async () => {
	const statement = await read(second);
	const buyer = { company: "Zoë — 100 €", address: DRAWN.join("\n"), vatId: "" };
	const bytes = await statementPdf(documentOf({ statement, seller: SELLER, buyer }));
	if (Bun.env.PICTURES) await Bun.write(Bun.env.PICTURES, bytes);
	const { text, links } = await pdfOf(bytes);
	for (const shown of [...DRAWN, "Zoë — 100 €"]) expect(text).toContain(shown);
	expect(text).toContain("VAT ID ATU12345678");
	for (const part of ["248.999999986", "−15.679012234", "0.123456789", "233.444444541"]) expect(text).toContain(part);
	expect(links.filter((url) => url === `${ORIGIN}/requests`).length).toBeGreaterThan(2);
	expect(bytes.length).toBeLessThan(100_000);
});

test("a text that the PDF's font lacks is refused in the PDF and shown on the page", async () => {
	const statement = await read(second);
	for (const company of ["北京", "שלום", "سلام", "บริษัท", "कंपनी", "Acme 🚀"]) {
		const buyer = { ...NOBODY, company };
		await expect(statementPdf(documentOf({ statement, buyer }))).rejects.toMatchObject({
			code: "unprocessable_request",
			message: expect.stringContaining("Print the statement's page instead"),
		});
		expect(await statementPage(documentOf({ statement, buyer })).text()).toContain(`<bdi>${company}`);
	}
	const lines = statementLines(statement, place).map((line) => ({ ...line, description: "北京 office" }));
	await expect(statementPdf(documentOf({ statement, lines }))).rejects.toThrow("Print the statement's page instead");
	// Invisible characters need no font, so they must not prevent the PDF.
	await statementPdf(documentOf({ statement, buyer: { ...NOBODY, company: "A\u200bcme\u2067" } }));
});

test("the page of a statement has the PDF's contents, escaped and without scripts", async () => {
	const statement = await read(second);
	const buyer = { ...NOBODY, company: '<script>"&</script>' };
	const response = statementPage(documentOf({ statement, buyer, language: "de" }));
	const page = await response.text();
	expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
	expect(page).toContain('<html lang="de">');
	expect(page).toContain("&#60;script&#62;&#34;&#38;&#60;/script&#62;");
	for (const part of ["Auszug", "Endbestand", "233,444444541", "Tage in UTC", `href="${ORIGIN}/requests"`])
		expect(page).toContain(part);
});

test("the statement of a closed month shows the present billing details", async () => {
	const statement = await read(second);
	expect(statement.state).toBe("closed");
	const paper = async (company: string) =>
		pdfOf(await statementPdf(documentOf({ statement, buyer: { ...NOBODY, company } })));
	const [before, after] = await Promise.all([paper("Acme Ltd"), paper("Acme Holding")]);
	expect(before.text).not.toBe(after.text);
	expect(before.text).toContain("Closed: figures are final");
});

test("a statement is in the reader's language", async () => {
	const statement = await read(second);
	const lines = statementLines(statement, place).map((line) => ({ ...line, description: "" }));
	const [english = "", german = ""] = await Promise.all(
		(["en", "de"] as const).map(async (language) => {
			return (await pdfOf(await statementPdf(documentOf({ statement, lines, language, seller: SELLER })))).text;
		}),
	);
	for (const id of [
		...(["Statement", "From", "Period", "Opening balance", "Closing balance", "Movements"] as const),
		...(["Usage by model", "Usage by day", "Summary"] as const),
	]) {
		expect(english).toContain(id);
		expect(german).toContain(server[id]);
		expect([id, german.includes(id)]).toEqual([id, false]);
	}
	for (const part of ["248,999999986", "−15,679012234", "233,444444541", "Tage in UTC", "Seite 1 von 1", " Token"])
		expect(german).toContain(part);
	expect(german).toContain(new Intl.DateTimeFormat("de", { month: "long", timeZone: "UTC" }).format(statement.fromMs));
});

test("the PDF of 3,000 movements has few pages and lets other requests run meanwhile", async () => {
	const statement = await read(second);
	const line = statementLines(statement, place)[0];
	if (line === undefined) throw new Error("there is a line");
	// Cutting long names takes most of the time. Only some names wrap, which adds two pages; if all wrapped, they would
	// add thirty.
	const lines = Array.from({ length: 3_000 }, (_, at) => ({
		...line,
		description: "a long ".repeat(at % 10 === 0 ? 70 : 1),
	}));
	const account = { id: ID, name: "x".repeat(200), email: "b@example.com" };
	const clock = spyOnSlowClock();
	const turns = spyOn(globalThis, "setImmediate");
	let turnsOfRows = 0;
	const bytes = await statementPdf(documentOf({ statement, lines, account })).finally(() => {
		turnsOfRows = turns.mock.calls.length;
		for (const spy of [clock, turns]) spy.mockRestore();
	});
	// Drawing must yield to the event loop after each slow row.
	expect(turnsOfRows).toBeGreaterThanOrEqual(300);
	const { text, pages } = await pdfOf(bytes);
	expect(pages).toBeLessThan(8);
	expect(text).toContain("2700 more are in the CSV.");
});

const PDF = new Uint8Array();

test("the console makes two PDFs at a time, at most one of an account, in turn", async () => {
	const queue = createPdfQueue({ clock: systemClock });
	const begun: string[] = [];
	const ends = new Map<string, () => void>();
	const make = (name: string) =>
		queue.make(name.charAt(0), name, () => {
			begun.push(name);
			return new Promise((resolve) => ends.set(name, () => resolve(PDF)));
		});
	const names = ["a1", ...Array.from({ length: 50 }, (_, nth) => `a${nth + 2}`), "b1", "c1"];
	const made = names.map((name) =>
		make(name).then(
			() => "made",
			(error: { code: string }) => error.code,
		),
	);
	await nextTurn();
	expect(begun).toEqual(["a1", "b1"]);
	for (const [nth, name] of ["a1", "a2"].entries()) {
		ends.get(name)?.();
		expect(await made[nth]).toBe("made");
		await nextTurn();
	}
	expect(begun).toEqual(["a1", "b1", "a2", "c1"]);
	// Further PDFs are refused only for the account that fills the queue.
	expect(await made[50]).toBe("overloaded");
});

test("the console keeps the last 200 PDFs in a cache", async () => {
	const queue = createPdfQueue({ clock: systemClock });
	let made = 0;
	const make = (key: string) =>
		queue.make("a", key, async () => {
			made += 1;
			return PDF;
		});
	await expect(queue.make("a", "k", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
	for (const key of ["k", "k"]) await make(key);
	expect(made).toBe(1);
	for (let nth = 0; nth < 199; nth++) await make(`other ${nth}`);
	await make("k");
	expect(made).toBe(200);
	await make("one more");
	await make("k");
	expect(made).toBe(201);
	await make("other 0");
	expect(made).toBe(202);
});

async function pdfOf(bytes: Uint8Array): Promise<{ text: string; links: string[]; pages: number }> {
	const document = await getDocument({ data: new Uint8Array(bytes), verbosity: 0 }).promise;
	const texts: string[] = [];
	const links: string[] = [];
	for (let page = 1; page <= document.numPages; page++) {
		const sheet = await document.getPage(page);
		const { items } = await sheet.getTextContent();
		texts.push(items.map((item) => ("str" in item ? item.str : "")).join(""));
		for (const { url } of await sheet.getAnnotations()) links.push(url);
	}
	return { text: texts.join("\n"), links, pages: document.numPages };
}
