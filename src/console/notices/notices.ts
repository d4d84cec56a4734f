import type { Clock } from "../../base/clock.ts";
import { withDeadline } from "../../base/clock.ts";
import type { BatchRecord } from "../../batch/batch-record.ts";
import { BATCH_ROWS, deleteInBatches } from "../../db/delete-in-batches.ts";
import type { Statements } from "../../db/statements.ts";
import { type Alert, alertEvent, alertMail, alertReason } from "../alerts/alert-text.ts";
import type { ConsoleFigures } from "../console-figures.ts";
import type { Mailer } from "../mail/mailer.ts";
import { rolesJson } from "../members/roles.ts";
import { endEvent, endMail, noticeId } from "./batch-end-text.ts";
import type { WebhookProblem, WebhookSender } from "./webhook.ts";

/**
 * What is told when batches end, and of what else an account wants to hear (`../alerts/alerts.ts` writes those rows). The
 * statement that ends a batch leaves a row in `batch_end`; from it the notices are made, in one statement, and each is
 * tried until somebody has taken it: at least once, with an id to know repetitions by. An attempt that dies with its
 * console is made again, so a notice arrives twice exactly if it was taken and that could not be written down: the
 * console died or the database was away just then, or a mail server took longer than a minute.
 */
export interface NoticeDeps {
	readonly statements: Statements;
	readonly clock: Clock;
	readonly mailer: Pick<Mailer, "deliver">;
	readonly sendWebhook: WebhookSender;
	readonly figures: Pick<ConsoleFigures, "notice">;
	/** `whsec_…` of what stands in the settings. */
	readonly webhookSecretOf: (salt: string) => string;
	/** Where links in mails lead. */
	readonly origin: () => string;
	readonly serviceName: string;
}

export type NoticeProblem =
	| WebhookProblem
	| "switched_off"
	| "no_member"
	| "mail_refused"
	| "mail_not_sent"
	| "mail_limit";

interface Due {
	/** The batch's id, or the event's own. */
	readonly id: string;
	readonly accountId: string;
	/** Null for what is told of something else. */
	readonly batch: BatchRecord | null;
	readonly alert: Alert | null;
	readonly channel: "mail" | "webhook";
	readonly userId: string;
	readonly attempts: number;
	/** Null if who it is for is no member any more. */
	readonly email: string | null;
	readonly url: string | null;
	readonly salt: string | null;
}

interface Outcome {
	readonly state: "waiting" | "sent" | "failed";
	readonly answer?: number;
	readonly problem?: NoticeProblem;
}

/** Ends that are taken up at once. */
const ENDS_MAX = 200;
/** Notices that are on their way at once, and those of one account among them, so that no dead receiver is in others' way. */
const SENDING_MAX = 20;
const SENDING_ACCOUNT_MAX = 4;
/** Looked through for them, in each lane. */
const DUE_MAX = 300;
/** Places that each lane has for its own, if something waits in it; the others go to the most urgent. */
const LANE_PLACES = 4;
/** What is beyond an account's share of a lane that is full waits so long for each share before it, and lets others pass. */
const SHARE_S = 5;
/** Seconds from the beginning of an attempt to the next one. The first is longer than any attempt takes. */
const WAITS_S = [120, 600, 1_800, 7_200, 18_000, 36_000];
/** Then nobody is told any more. */
const GIVEN_UP_HOURS = 72;
/** A receiver that failed is left alone with everything else for so long. */
const RECEIVER_REST_S = 60;
const MAIL_DEADLINE_MS = 60_000;
const KEPT_DAYS = 30;
/** HTTP 410: the receiver wants no more of it. */
const GONE = 410;

/** Tells what is due on one channel, once. */
export async function sendNotices(deps: NoticeDeps, channel: "mail" | "webhook", signal: AbortSignal): Promise<void> {
	await makeNotices(deps.statements);
	const due = await claim(deps.statements, channel);
	// All of them have ended when this does, also if one could not be written down: a stop waits for it.
	const ended = await Promise.allSettled(
		due.map(async (one) => {
			const outcome = await attempt(deps, one, signal);
			deps.figures.notice(channel, await write(deps.statements, one, outcome));
		}),
	);
	for (const one of ended) if (one.status === "rejected") throw one.reason;
}

/** Of people that make or rotate keys the audit log knows which; who gets notices hears of the others' batches. */
async function makeNotices(statements: Statements): Promise<void> {
	await statements`
		with ended as (
			delete from batch_end where batch_id in (
				select batch_id from batch_end order by batch_id limit ${ENDS_MAX} for update skip locked)
			returning batch_id
		), told as (
			select b.id, b.account_id, b.key_id, s.mail, s.webhook_url from ended e
				join batch b on b.id = e.batch_id join batch_notice_setting s on s.account_id = b.account_id
		), maker as (
			select t.id, m.user_id from told t join member m on m.account_id = t.account_id
			where t.mail = 'maker' and exists (select 1 from audit_event a where a.actor = m.user_id and a.account_id = t.account_id
				and ((a.action = 'key.create' and a.subject = t.key_id) or (a.action = 'key.rotate' and a.detail->>'replacement' = t.key_id)))
		)
		insert into batch_notice (batch_id, account_id, channel, user_id)
			select id, account_id, 'webhook', '' from told where webhook_url is not null
			union all select t.id, t.account_id, 'mail', k.user_id from told t join maker k on k.id = t.id
			union all select t.id, t.account_id, 'mail', m.user_id from told t join member m on m.account_id = t.account_id
					and jsonb_exists(${rolesJson("notices.get")}::text::jsonb, m.role)
				where t.mail is not null and not exists (select 1 from maker k where k.id = t.id)
		on conflict do nothing`;
}

/**
 * What this console tries now. One console at a time claims, and none waits for it. Lanes: 0, what an account wants to hear
 * of itself; 1, its batches, which one account may end by the thousand; 2, models that go away, which all accounts hear of.
 * Rows are found again by their place: by their key PostgreSQL reads all of them, while it has not counted them yet.
 */
function claim(statements: Statements, channel: Due["channel"]): Promise<Due[]> {
	return statements<Due>`
		with turn as materialized (
			select pg_try_advisory_xact_lock(hashtextextended('batch notices', 0)) as mine
		), due as materialized (
			select l.lane, n.* from (values (0), (1), (2)) l(lane) cross join lateral (
				select w.ctid as row, w.account_id, w.next_at from batch_notice w
				where (select mine from turn) and w.state = 'waiting' and w.channel = ${channel}
					and (case when w.type is null then 1 when w.type = 'model.retiring' then 2 else 0 end) = l.lane and w.next_at <= now()
				order by w.next_at limit ${DUE_MAX}) n
		), shared as (
			select d.*, row_number() over (partition by lane, account_id order by next_at) as place, count(*) over (partition by lane) as waiting from due d
		), chosen as (
			select p.row from (
				select s.*, row_number() over (partition by lane order by next_at) as lane_place from shared s where place <= ${SENDING_ACCOUNT_MAX}) p
			order by lane_place > ${LANE_PLACES}, lane, next_at limit ${SENDING_MAX}
		), passed as (
			update batch_notice n set next_at = clock_timestamp() + make_interval(secs => ((s.place - 1) / ${SENDING_ACCOUNT_MAX}::integer * ${SHARE_S}::integer)::integer)
			from shared s where s.place > ${SENDING_ACCOUNT_MAX} and s.waiting = ${DUE_MAX}
				and n.ctid = s.row and n.state = 'waiting'
		), begun as (
			update batch_notice n set attempts = n.attempts + 1, tried_at = clock_timestamp(),
				next_at = clock_timestamp() + make_interval(secs => (${JSON.stringify(WAITS_S)}::text::jsonb
					-> least(n.attempts, ${WAITS_S.length - 1}))::integer)
			from chosen c where n.ctid = c.row and n.state = 'waiting' and n.next_at <= now()
			returning n.batch_id, n.channel, n.user_id, n.account_id, n.attempts, n.type, n.data, n.created_at
		)
		select n.batch_id as id, n.account_id as "accountId", case when b.id is not null then batch_fields(b) end as batch,
			case when n.type is not null then jsonb_build_object('id', n.batch_id, 'type', n.type, 'data', n.data,
				'createdAtMs', floor(extract(epoch from n.created_at) * 1000)) end as alert, n.channel, n.user_id as "userId", n.attempts, u.email,
			s.webhook_url as url, s.webhook_salt as salt
		from begun n left join batch b on b.id = n.batch_id
			left join batch_notice_setting s on s.account_id = n.account_id
			left join member m on m.account_id = n.account_id and m.user_id = n.user_id
				and case when n.type is null then s.mail is not null else jsonb_exists(${rolesJson("notices.get")}::text::jsonb, m.role) end
			left join console_user u on u.id = m.user_id`;
}

async function attempt(deps: NoticeDeps, due: Due, signal: AbortSignal): Promise<Outcome> {
	return due.channel === "webhook" ? callWebhook(deps, due, signal) : sendMail(deps, due);
}

async function callWebhook(deps: NoticeDeps, { batch, alert, url, salt }: Due, signal: AbortSignal): Promise<Outcome> {
	if (url === null || salt === null) return { state: "failed", problem: "switched_off" };
	const told =
		batch !== null
			? { id: noticeId(batch.id), body: endEvent(batch) }
			: alert && { id: alert.id, body: alertEvent(alert) };
	if (told === null) return GONE_BATCH;
	const message = { ...told, url, secret: deps.webhookSecretOf(salt) };
	const answer = await deps.sendWebhook({ ...message, atMs: deps.clock.wallMs() }, signal);
	if ("problem" in answer) return { state: "waiting", problem: answer.problem };
	const { status } = answer;
	return { state: status >= 200 && status < 300 ? "sent" : status === GONE ? "failed" : "waiting", answer: status };
}

async function sendMail(deps: NoticeDeps, { batch, alert, email, userId, accountId }: Due): Promise<Outcome> {
	const told =
		batch !== null ? endMail(batch, deps.serviceName, deps.origin()) : alert && mailOfAlert(deps, alert, accountId);
	if (told === null) return GONE_BATCH;
	if (email === null) return { state: "failed", problem: "no_member" };
	const mail = {
		to: email,
		...told,
		id: `${told.id}.${userId}`,
		isAskedFor: true,
	} as const;
	const late = () => new Error("the mail server took too long");
	try {
		const sent = await withDeadline(deps.clock, deps.mailer.deliver(mail), MAIL_DEADLINE_MS, late);
		return sent ? { state: "sent" } : { state: "waiting", problem: "mail_limit" };
	} catch (error) {
		// Of SMTP: 5xx is for good, if it is said of this recipient or this mail; what is said of us, who operates us can mend.
		const { responseCode, command } = error as { responseCode?: number; command?: string };
		const isOfMail = command === "RCPT TO" || command === "DATA";
		if (isOfMail && Number(responseCode) >= 500) return { state: "failed", problem: "mail_refused" };
		return { state: "waiting", problem: "mail_not_sent" };
	}
}

/** Batches are never removed: one that is not there came back without its rows, as from a backup. */
const GONE_BATCH: Outcome = { state: "failed", problem: "switched_off" };

function mailOfAlert({ origin, serviceName }: NoticeDeps, alert: Alert, accountId: string) {
	const { subject, says, path } = alertMail(alert, serviceName);
	// Who works in several accounts comes to the page of this one.
	const link = `${origin()}${path}${path.includes("?") ? "&" : "?"}account=${accountId}`;
	return { id: alert.id, subject, paragraphs: [says, link, alertReason(alert, origin())], link };
}

/** Returns what it is from now on: who takes nothing for too long is given up, which an operator is to hear of. */
async function write(statements: Statements, due: Due, outcome: Outcome): Promise<Outcome["state"]> {
	const { id, accountId, channel, userId, attempts } = due;
	const { state, answer = null, problem = null } = outcome;
	// Written so that it is found by its key alone: the indexes of what waits look as good until PostgreSQL has counted that.
	const [written] = await statements<Pick<Outcome, "state">>`
		update batch_notice set answer = ${answer}::integer, problem = ${problem}::text,
			state = case when ${state} = 'waiting' and created_at < clock_timestamp() - make_interval(hours => ${GIVEN_UP_HOURS})
				then 'failed' else ${state} end
		where batch_id = ${id} and channel = ${channel} and user_id = ${userId} and attempts = ${attempts}
			and state || '' = 'waiting'
		returning state`;
	if (state === "waiting" && channel === "webhook") await letRest(statements, accountId);
	return written?.state ?? state;
}

async function letRest(statements: Statements, accountId: string): Promise<void> {
	await statements`
		update batch_notice set next_at = greatest(next_at, clock_timestamp() + make_interval(secs => ${RECEIVER_REST_S}))
		where account_id = ${accountId} and channel = 'webhook' and state = 'waiting'`;
}

/** What was told long ago. */
export async function forgetOldNotices(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from batch_notice where (batch_id, channel, user_id) in (
				select batch_id, channel, user_id from batch_notice
				where created_at < now() - make_interval(days => ${KEPT_DAYS}) order by created_at limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
