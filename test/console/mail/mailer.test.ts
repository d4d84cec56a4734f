import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { createLog } from "../../../src/base/log.ts";
import { createMailer } from "../../../src/console/mail/mailer.ts";
import { untilEnd } from "../../support/at-end.ts";
import { withDatabase } from "../../support/database.ts";
import { startMailServer } from "../../support/mail-server.ts";
import { waitFor } from "../../support/wait.ts";

const db = await withDatabase();

/** A clock with shorter pauses between attempts. */
const clock = {
	...systemClock,
	after: (ms: number, then: () => void) => systemClock.after(ms === 3_000 || ms === 30_000 ? 20 : ms, then),
};

function mailerBefore(refusals: readonly string[]) {
	const server = untilEnd(startMailServer(refusals));
	const lines: { level: string; message: string }[] = [];
	const figures: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(JSON.parse(line)) });
	const deps = { clock, log, statements: db.statements, figures: { mail: (what: string) => void figures.push(what) } };
	const mailer = createMailer(deps, {
		server: { smtpUrl: server.url, from: "Service <no-reply@service.example>" },
		demo: false,
	});
	const to = `${crypto.randomUUID()}@example.com`;
	return {
		mails: server.mails,
		lines,
		figures,
		send: (more: { isByStranger?: true } = {}) =>
			mailer.send({ to, subject: { id: "Summary" }, paragraphs: ["Hello!"], ...more }),
		counts: async () =>
			(await db.sql`select count from rate_count order by started_at desc limit 2`).map(({ count }) => count),
	};
}

test("a temporarily refused mail is retried and counts once towards its limit", async () => {
	const { mails, lines, figures, send, counts } = mailerBefore(["451 greylisted: come back", "454 too many at once"]);
	send();
	await waitFor(() => figures.length > 0, "what became of it");
	expect(mails.map(({ subject }) => subject)).toEqual(["Summary"]);
	expect(mails[0]?.head).toMatch(/^Message-ID: <mail_[0-9a-f]{32}@service\.example>/im);
	expect(figures).toEqual(["sent"]);
	expect(lines.map(({ level }) => level)).toEqual(["warn", "warn"]);
	expect(await counts()).toEqual([1, 1]);
});

test("a permanently refused mail is not retried; other failures get three attempts", async () => {
	const final = mailerBefore(["550 no such mailbox"]);
	final.send();
	await waitFor(() => final.figures.length > 0, "what became of it");
	expect(final.lines.map(({ message }) => message)).toEqual(["a mail could not be sent"]);
	const never = mailerBefore(Array.from({ length: 9 }, () => "451 not now"));
	never.send();
	await waitFor(() => never.figures.length > 0, "what became of it");
	expect(never.lines.map(({ level }) => level)).toEqual(["warn", "warn", "error"]);
	expect([final.figures, never.figures]).toEqual([["failed"], ["failed"]]);
	expect([...final.mails, ...never.mails]).toEqual([]);
});

test("mails caused by strangers take at most half of the queue and log one line", () => {
	const { lines, figures, send } = mailerBefore([]);
	for (let nth = 0; nth < 200; nth += 1) send({ isByStranger: true });
	expect([figures.length, lines.length]).toEqual([150, 1]);
	for (let nth = 0; nth < 51; nth += 1) send();
	expect([figures.length, lines.length]).toEqual([151, 1]);
});
