import { type Clock, withDeadline } from "../../base/clock.ts";
import type { BatchRecord } from "../../batch/batch-record.ts";
import { BATCH_ROWS, deleteInBatches, type Statements } from "../../db/statements.ts";
import { type Alert, alertEvent, alertMail, alertRecipientReason } from "../alerts/alert-text.ts";
import type { ConsoleFigures } from "../console-figures.ts";
import type { Mailer } from "../mail/mailer.ts";
import { rolesJson } from "../members/roles.ts";
import { batchEndEvent, batchEndMail, noticeId } from "./batch-end-text.ts";
import type { WebhookProblem, WebhookSender } from "./webhook.ts";

/**
 * Delivers notices of ended batches and of alerts (`../alerts/alerts.ts` creates the alerts) at least once: a notice is
 * sent again if its outcome could not be recorded. Receivers detect repetitions by the notice's id.
 */
export interface NoticeDeps {
	readonly statements: Statements;
	readonly clock: Clock;
	readonly mailer: Pick<Mailer, "deliver">;
	readonly sendWebhook: WebhookSender;
	readonly figures: Pick<ConsoleFigures, "notice">;
	readonly webhookSecretOf: (salt: string) => string;
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
	/** Id of the batch, or of the event that is not about a batch. */
	readonly id: string;
	readonly accountId: string;
	readonly batch: BatchRecord | null;
	readonly alert: Alert | null;
	readonly channel: "mail" | "webhook";
	readonly userId: string;
	readonly attempts: number;
	readonly email: string | null;
	readonly url: string | null;
	readonly salt: string | null;
}

interface Outcome {
	readonly state: "waiting" | "sent" | "failed";
	readonly answer?: number;
	readonly problem?: NoticeProblem;
}

const ENDS_MAX = 200;
/** Concurrent deliveries, in total and per account: a receiver that hangs blocks only its own account. */
const SENDING_MAX = 20;
const SENDING_ACCOUNT_MAX = 4;
const DUE_MAX = 300;
/** Deliveries reserved for each lane with pending notices; the lowest lane number gets the remaining ones. */
const LANE_PLACES = 4;
/** Seconds of delay per notice beyond an account's share of a full lane, so that other accounts are served first. */
const SHARE_S = 5;
/** Seconds between starts of attempts. The first exceeds an attempt's deadline, so that attempts never overlap. */
const WAITS_S = [120, 600, 1_800, 7_200, 18_000, 36_000];
const GIVEN_UP_HOURS = 72;
/** Pause in seconds before a receiver is called again after a failed attempt. */
const RECEIVER_REST_S = 60;
const MAIL_DEADLINE_MS = 60_000;
const KEPT_DAYS = 30;
/** HTTP 410 Gone: the receiver wants no more notices. */
const GONE = 410;

export async function sendNotices(deps: NoticeDeps, channel: "mail" | "webhook", signal: AbortSignal): Promise<void> {
	await makeNotices(deps.statements);
	const due = await claim(deps.statements, channel);
	// Waits for all deliveries, even if an outcome could not be recorded: a stop of the console waits here.
	const ended = await Promise.allSettled(
		due.map(async (one) => {
			deps.figures.notice(channel, await write(deps.statements, one, await attempt(deps, one, signal)));
		}),
	);
	for (const one of ended) if (one.status === "rejected") throw one.reason;
}

/**
 * Creates notices of ended batches. The mail for `maker` goes to the member who created or rotated the batch's key
 * according to the audit log; without such a member, to members with the right `notices.get`.
 */
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
 * Claims notices that are due; only one console at a time can claim. Lanes: 0, alerts of an account; 1, its batches,
 * perhaps thousands; 2, retiring models, which concern all accounts. Updates by ctid, because Postgres would scan the
 * whole table while it lacks statistics.
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
			? { id: noticeId(batch.id), body: batchEndEvent(batch) }
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
		batch !== null
			? batchEndMail(batch, deps.serviceName, deps.origin())
			: alert && mailOfAlert(deps, alert, accountId);
	if (told === null) return GONE_BATCH;
	if (email === null) return { state: "failed", problem: "no_member" };
	const mail = { to: email, ...told, id: `${told.id}.${userId}`, isAskedFor: true } as const;
	const late = () => new Error("the mail server took too long");
	try {
		const sent = await withDeadline(deps.clock, deps.mailer.deliver(mail), MAIL_DEADLINE_MS, late);
		return sent ? { state: "sent" } : { state: "waiting", problem: "mail_limit" };
	} catch (error) {
		// SMTP 5xx is permanent if it concerns this recipient or mail. An error about the sender is retried, since the
		// operator can fix it.
		const { responseCode, command } = error as { responseCode?: number; command?: string };
		const isOfMail = command === "RCPT TO" || command === "DATA";
		if (isOfMail && Number(responseCode) >= 500) return { state: "failed", problem: "mail_refused" };
		return { state: "waiting", problem: "mail_not_sent" };
	}
}

/** Outcome for a batch that is not in the database: batches are never deleted, so the restore of a backup lost it. */
const GONE_BATCH: Outcome = { state: "failed", problem: "switched_off" };

function mailOfAlert({ origin, serviceName }: NoticeDeps, alert: Alert, accountId: string) {
	const { subject, says, path } = alertMail(alert, serviceName);
	// The link names the account, because the recipient may have several accounts.
	const link = `${origin()}${path}${path.includes("?") ? "&" : "?"}account=${accountId}`;
	return { id: alert.id, subject, paragraphs: [says, link, alertRecipientReason(alert, origin())], link };
}

/**
 * Records the outcome and returns the notice's new state. A notice fails for good GIVEN_UP_HOURS after its creation.
 */
async function write(statements: Statements, due: Due, outcome: Outcome): Promise<Outcome["state"]> {
	const { id, accountId, channel, userId, attempts } = due;
	const { state, answer = null, problem = null } = outcome;
	// `state || ''` forces the primary key: without statistics Postgres uses the index of pending notices.
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

export async function deleteOldNotices(statements: Statements): Promise<void> {
	await deleteInBatches(async () => {
		const rows = await statements`
			delete from batch_notice where (batch_id, channel, user_id) in (
				select batch_id, channel, user_id from batch_notice
				where created_at < now() - make_interval(days => ${KEPT_DAYS}) order by created_at limit ${BATCH_ROWS})
			returning 1`;
		return rows.length;
	});
}
