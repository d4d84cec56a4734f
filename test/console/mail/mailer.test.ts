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

function mailerBefore(refusals: readonly string[], over: Partial<typeof clock> = {}) {
	const server = untilEnd(startMailServer(refusals));
	const lines: { level: string; message: string }[] = [];
	const figures: string[] = [];
	const log = createLog({ level: "info", write: (line) => void lines.push(JSON.parse(line)) });
	const timed = { ...clock, ...over };
	const deps = {
		clock: timed,
		log,
		statements: db.statements,
		figures: { mail: (what: string) => void figures.push(what) },
	};
	const mailer = createMailer(deps, {
		server: { smtpUrl: server.url, from: "Service <no-reply@service.example>" },
		demo: false,
	});
	const to = `${crypto.randomUUID()}@example.com`;
	return {
		mails: server.mails,
		lines,
		figures,
		send: (more: { isByStranger?: true; network?: string; to?: string } = {}) =>
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

/** Sends mails of strangers from one network, each to another mailbox. */
function sendMany({ send }: Pick<ReturnType<typeof mailerBefore>, "send">, network: string, count: number): void {
	for (let nth = 0; nth < count; nth += 1)
		send({ isByStranger: true, network, to: `${crypto.randomUUID()}@example.com` });
}

test("a network's mails take at most half of the places, and a flood logs one line", () => {
	const mailer = mailerBefore([]);
	const { lines, figures, send } = mailer;
	sendMany(mailer, "flood", 200);
	expect([figures.length, lines.length]).toEqual([175, 1]);
	for (let nth = 0; nth < 30; nth += 1) sendMany(mailer, `network ${nth}`, 1);
	expect([figures.length, lines.length]).toEqual([180, 1]);
	for (let nth = 0; nth < 26; nth += 1) send();
	expect([figures.length, lines.length]).toEqual([181, 2]);
});

test("mails that wait for a retry delay no new mail and share their places by network", async () => {
	const pauses: (() => void)[] = [];
	const after = (ms: number, then: () => void) => {
		if (ms !== 3_000) return systemClock.after(ms, then);
		pauses.push(then);
		return () => {};
	};
	const mailer = mailerBefore(Array(51).fill("451 not now"), { after });
	const { mails, figures } = mailer;
	for (const count of [25, 50]) {
		sendMany(mailer, "flood", 25);
		await waitFor(() => pauses.length === count, "the mails to be refused");
	}
	mailer.send({ isByStranger: true, network: "honest" });
	await waitFor(() => pauses.length === 51, "the honest mail to be refused");
	expect(figures).toEqual(["failed"]);
	sendMany(mailer, "flood", 1);
	await waitFor(() => mails.length === 1, "a new mail to be sent");
	pauses.at(-1)?.();
	await waitFor(() => mails.length === 2, "the honest mail to be sent");
	expect(figures).toEqual(["failed", "sent", "sent"]);
});
