-- All tables, with what each column means. This function comes first, since defaults of tables call it.
SET LOCAL check_function_bodies = off;
--> statement-breakpoint
-- The moment at which a row is recorded: now, but never in a closed day, whatever the server's clock says. A statement
-- that writes many rows calls it once.
CREATE FUNCTION books_now() RETURNS timestamptz LANGUAGE sql STABLE AS $$
	SELECT greatest(now(), (SELECT s.closed_until FROM seal_cursor s WHERE s.id = 1))
$$;
--> statement-breakpoint
SET LOCAL check_function_bodies = on;
--> statement-breakpoint
-- Numbers the recalls. A number shows when it was taken, not when its row appeared; that is enough, see `recall`.
CREATE SEQUENCE "recall_ticket" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1;--> statement-breakpoint
-- Batches of accounts. Prompts and answers are in the encrypted files only.
CREATE TABLE "batch" (
	-- `batch_…`, sortable by time.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- The key that made it and is charged for its lines.
	"key_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"input_file_id" text NOT NULL,
	"completion_window" text NOT NULL,
	"metadata" jsonb,
	-- Seconds that output files are kept; null for the default.
	"output_expires_s" integer,
	"idempotency_key" text,
	-- One of validating, failed, in_progress, finalizing, completed, expired, cancelling, cancelled.
	"state" text NOT NULL,
	-- How the batch will end, once that is decided. One of completed, expired, cancelled, failed.
	"ending" text,
	-- Incremented by each run; statements of earlier runs have no effect.
	"run" integer DEFAULT 0 NOT NULL,
	-- Null until the input was read.
	"model" text,
	-- Why the batch is paused: `{code, message, sinceMs}`.
	"paused" jsonb,
	-- Mistakes in the input, or why the batch was stopped: `[{code, message, param, line}]`.
	"errors" jsonb,
	"total" integer DEFAULT 0 NOT NULL,
	"completed" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"prompt_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"completion_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- Shown once they are complete.
	"output_file_id" text,
	"error_file_id" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"in_progress_at" timestamp with time zone,
	"finalizing_at" timestamp with time zone,
	"completed_at" timestamp with time zone,
	"failed_at" timestamp with time zone,
	"expired_at" timestamp with time zone,
	"cancelling_at" timestamp with time zone,
	"cancelled_at" timestamp with time zone,
	CONSTRAINT "batch_idempotency" UNIQUE("key_id","idempotency_key")
);
--> statement-breakpoint
-- Requests of lines whose run died before their outcome was sealed: the line is sent again, and the charge is
-- credited.
CREATE TABLE "batch_lost_request" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"batch_id" text NOT NULL,
	"account_id" text NOT NULL,
	"lost_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- Lines of open batches. A row is written before the line is sent and later names the part of the file that holds its
-- outcome. Rows are removed when the batch is over.
CREATE TABLE "batch_line" (
	"batch_id" text NOT NULL,
	-- Line number in the input, from 1.
	"line" integer NOT NULL,
	-- The request that carries it.
	"request_id" uuid NOT NULL,
	-- `free`: unsent or not charged, may be sent again. `output`, `error`: the file; see `part`. One of claimed,
	-- free, output, error.
	"state" text NOT NULL,
	-- The part of that file with the outcome; it counts once the part is sealed.
	"part" integer,
	"prompt_tokens" integer DEFAULT 0 NOT NULL,
	"cached_tokens" integer DEFAULT 0 NOT NULL,
	"completion_tokens" integer DEFAULT 0 NOT NULL,
	"reasoning_tokens" integer DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "batch_line_batch_id_line_pk" PRIMARY KEY("batch_id","line")
);
--> statement-breakpoint
-- Credit adjustments by operators: the request and its decision.
CREATE TABLE "credit_adjustment" (
	-- `adj_…`, sortable by time.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- Negative takes credit away.
	"amount_nano_usd" bigint NOT NULL,
	"reason" text NOT NULL,
	-- Chosen by the sender; one adjustment each.
	"idempotency_key" text NOT NULL,
	-- One of pending, booked, rejected.
	"state" text NOT NULL,
	"first_by" text NOT NULL,
	"first_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- The second operator, who confirmed or rejected.
	"second_by" text,
	"second_at" timestamp with time zone,
	CONSTRAINT "credit_adjustment_idempotency_key_unique" UNIQUE("idempotency_key")
);
--> statement-breakpoint
-- Automatic top-up: threshold, amount, monthly limit. No row: switched off.
CREATE TABLE "auto_top_up" (
	"account_id" text PRIMARY KEY NOT NULL,
	"below_nano_usd" bigint NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	-- Per calendar month of the account's time zone; begun attempts count.
	"month_most_nano_usd" bigint NOT NULL,
	-- stopped: until it is saved again. needs_owner: until the pending payment is confirmed or cancelled. One of on,
	-- stopped, needs_owner.
	"state" text NOT NULL,
	-- Reason for the state; see `src/billing/stop-reasons.ts`.
	"reason" text,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- When it is checked again without a change of credit, since the obstacle may be over.
	"look_at" timestamp with time zone,
	-- The notice that is still to be sent.
	"tell" text
);
--> statement-breakpoint
-- One automatic top-up. An open one blocks the next.
CREATE TABLE "auto_top_up_attempt" (
	-- `att_…`: Stripe's Idempotency-Key.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"top_up_id" text NOT NULL,
	-- Of the payment as first requested; a repetition requests the same.
	"amount_nano_usd" bigint NOT NULL,
	"customer_id" text NOT NULL,
	"payment_method_id" text NOT NULL,
	-- unknown: sent, and no answer tells the outcome. ended: nothing was charged and nothing can be. One of begun,
	-- sent, unknown, needs_authentication, succeeded, declined, ended.
	"state" text NOT NULL,
	"reason" text,
	-- `pi_…`, once known.
	"payment_id" text,
	"begun_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- The month that it counts in, by the account's zone at that time: `2027-01`.
	"month" text NOT NULL,
	"sent_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	-- When any console looks at it next.
	"look_at" timestamp with time zone DEFAULT now() NOT NULL,
	"looks" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "auto_top_up_attempt_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
-- Accounts with automatic top-ups whose credit changed since the last check. Written by triggers.
CREATE TABLE "auto_top_up_touched" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL
);
--> statement-breakpoint
-- A Stripe page on which a card is given and read from afterwards; or a card that Stripe is to delete.
CREATE TABLE "card_setup" (
	-- `cs_…`, or `pm_…` of a card.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- card: a card only. payment: the payment of an attempt that its owner must confirm. gone: a card that was
	-- removed or replaced. One of card, payment, gone.
	"kind" text NOT NULL,
	-- One of open, done, closed.
	"state" text DEFAULT 'open' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"look_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- The account's card for automatic top-ups, as Stripe's ids. No card number is stored.
CREATE TABLE "saved_card" (
	"account_id" text PRIMARY KEY NOT NULL,
	-- `cus_…`
	"customer_id" text NOT NULL,
	-- `pm_…`; null while there is none.
	"payment_method_id" text,
	"brand" text,
	"last_four" text,
	"exp_month" integer,
	"exp_year" integer,
	"saved_at" timestamp with time zone
);
--> statement-breakpoint
-- The page where a card top-up is paid.
CREATE TABLE "stripe_checkout" (
	-- `cs_…`
	"id" text PRIMARY KEY NOT NULL,
	"top_up_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "stripe_checkout_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
-- One clearing per day, by the first console.
CREATE TABLE "stripe_clearing" (
	-- In UTC.
	"day" date PRIMARY KEY NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- Null while it runs, and after an interrupted one.
	"finished_at" timestamp with time zone,
	-- Objects compared, and how many no event had reported.
	"outcome" jsonb
);
--> statement-breakpoint
CREATE TABLE "stripe_dispute" (
	-- `dp_…`
	"id" text PRIMARY KEY NOT NULL,
	"payment_id" text NOT NULL,
	"amount_cents" bigint NOT NULL,
	-- won and lost are final. One of open, won, lost.
	"state" text NOT NULL,
	-- What is booked: nothing, the amount taken, or the amount given back. One of nothing, taken, returned.
	"booked" text DEFAULT 'nothing' NOT NULL,
	-- This dispute suspended the account.
	"suspended" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
-- Processed events of Stripe, each once.
CREATE TABLE "stripe_event" (
	"id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- `applied`, `ignored`, or why it was refused.
	"outcome" text NOT NULL,
	"detail" jsonb NOT NULL
);
--> statement-breakpoint
-- Differences between Stripe and the books. An open one raises an alert.
CREATE TABLE "stripe_finding" (
	-- Unique subject: `paid:pi_…`, `books:top_…`, `refund:pi_…`, `dispute:dp_…`, `open:att_…`.
	"id" text PRIMARY KEY NOT NULL,
	-- uncredited: paid at Stripe, not credited. unpaid: credited, not paid. refund and dispute: they differ.
	-- unfinished: more objects than one clearing compares. undecided: unknown whether a saved card was charged. One
	-- of uncredited, unpaid, refund, dispute, unfinished, undecided.
	"kind" text NOT NULL,
	-- Text for operators; `received` from a payment's arrival until its effects are committed.
	"reason" text NOT NULL,
	"top_up_id" text,
	"amount_cents" bigint,
	"currency" text,
	"found_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	-- `stripe`, or the operator who resolved it.
	"resolved_by" text,
	"resolution" text
);
--> statement-breakpoint
-- What Stripe has reported of a payment, in any order. Bookings follow from this row; events only move it forward, so
-- late and repeated ones change nothing.
CREATE TABLE "stripe_payment" (
	-- Payment intent, `pi_…`.
	"id" text PRIMARY KEY NOT NULL,
	-- The top-up; null while only a refund or dispute was reported.
	"top_up_id" text,
	-- Sum of all refunds.
	"refunded_cents" bigint DEFAULT 0 NOT NULL,
	-- The part that is booked.
	"booked_refund_cents" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "stripe_payment_top_up_id_unique" UNIQUE("top_up_id")
);
--> statement-breakpoint
-- Bank transfers that operators found.
CREATE TABLE "top_up_check" (
	"top_up_id" text PRIMARY KEY NOT NULL,
	-- The bank's transaction number: one transaction pays one top-up.
	"transaction_reference" text NOT NULL,
	"first_by" text NOT NULL,
	"first_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- The second operator, for large amounts.
	"second_by" text,
	"second_at" timestamp with time zone,
	CONSTRAINT "top_up_check_transaction_reference_unique" UNIQUE("transaction_reference")
);
--> statement-breakpoint
-- A top-up; it is credited when its payment was verified.
CREATE TABLE "top_up" (
	-- `top_…`
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	-- One of transfer, card, demo.
	"method" text NOT NULL,
	-- Reference of the payer or the payment service; one payment is credited once.
	"reference" text NOT NULL,
	-- One of pending, confirmed, rejected, refunded, disputed.
	"state" text DEFAULT 'pending' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"decided_at" timestamp with time zone,
	"decided_by" text,
	CONSTRAINT "top_up_reference_unique" UNIQUE("reference")
);
--> statement-breakpoint
-- Every version of every model's prices, in pico-dollars per unit. Rows are only inserted.
CREATE TABLE "rate_card" (
	-- `<model>@<version>`.
	"id" text PRIMARY KEY NOT NULL,
	"model" text NOT NULL,
	"version" integer NOT NULL,
	"input" bigint NOT NULL,
	"cached_input" bigint NOT NULL,
	"output" bigint NOT NULL,
	"request" bigint NOT NULL,
	"image" bigint NOT NULL,
	"audio_second" bigint NOT NULL,
	"search" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "rate_card_model_version" UNIQUE("model","version"),
	CONSTRAINT "rate_card_version_positive" CHECK ("rate_card"."version" >= 1),
	CONSTRAINT "rate_card_rates_not_negative" CHECK (least("rate_card"."input", "rate_card"."cached_input", "rate_card"."output", "rate_card"."request", "rate_card"."image", "rate_card"."audio_second", "rate_card"."search") >= 0)
);
--> statement-breakpoint
-- Every change that running instances must apply, in order.
CREATE TABLE "control_log" (
	"seq" bigint PRIMARY KEY NOT NULL,
	-- One of key, account, project, budget.
	"kind" text NOT NULL,
	-- The id of the key, account or budget.
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- Entries of a transaction of several statements: they are appended to the log at its commit.
CREATE TABLE "control_pending" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "control_pending_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"payload" jsonb NOT NULL
);
--> statement-breakpoint
-- The states of an instance's epoch. Each change and each heartbeat adds a row; the newest one counts (view
-- `instance_now`) and none is ever updated. So no row lock can make a heartbeat or a fence wait.
CREATE TABLE "instance_beat" (
	"id" text NOT NULL,
	-- Grows with each start of the same identity; journal and leases belong to it.
	"epoch" integer NOT NULL,
	-- Counts the rows of the epoch.
	"beat" bigint NOT NULL,
	-- joining → live ⇄ silent → dead → closing → left.
	-- - silent: another instance has seen no heartbeat for longer than its lease, by its own clock.
	-- - dead: admits nothing any more and may still settle.
	-- - closing: its leases are being closed.
	"state" text NOT NULL,
	-- Length of the lease that this row began. An instance that waits for its end counts from when it saw the row.
	"ttl_ms" integer NOT NULL,
	-- When it ends by the database's wall clock: for people.
	"lease_until" timestamp with time zone NOT NULL,
	-- The newest entry of the control log that it has applied.
	"applied_seq" bigint DEFAULT 0 NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	CONSTRAINT "instance_beat_id_epoch_beat_pk" PRIMARY KEY("id","epoch","beat")
);
--> statement-breakpoint
-- The servers that this database has lived on: system identifier and timeline. On one that is not `quiet` yet,
-- instances may still act on entries of the former server that this one does not have.
CREATE TABLE "server_seen" (
	"mark" text NOT NULL,
	"quiet" boolean NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "server_seen_mark_quiet_pk" PRIMARY KEY("mark","quiet")
);
--> statement-breakpoint
-- Marks of notices that are sent only once: the crossing of a threshold, a key's end.
CREATE TABLE "alert_mark" (
	"account_id" text NOT NULL,
	-- `cap:<budget>:80:<cap>`, `expires:<key>:<moment>`, `topup:<id>`, `unusual:<day>`.
	"mark" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "alert_mark_account_id_mark_pk" PRIMARY KEY("account_id","mark")
);
--> statement-breakpoint
-- Accounts whose credit or usage changed since the last look. Triggers insert rows for accounts that chose notices.
-- An account may have several rows: with one, an insert would wait for its deletion, and bookings of credit insert
-- rows.
CREATE TABLE "alert_touched" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL
);
--> statement-breakpoint
-- Sign-in of an account's people through their company's OpenID provider.
CREATE TABLE "company_sign_in" (
	"account_id" text PRIMARY KEY NOT NULL,
	-- Changes whenever the rules for signing in change: sessions of an earlier revision become invalid.
	"revision" text NOT NULL,
	"issuer" text NOT NULL,
	"client_id" text NOT NULL,
	-- Encrypted under the console's secret.
	"client_secret" text NOT NULL,
	-- The domain for whose addresses it may speak, once verified.
	"domain" text NOT NULL,
	-- The value that the domain's DNS must contain.
	"domain_token" text NOT NULL,
	"domain_verified_at" timestamp with time zone,
	-- The provider need not mark an address as verified.
	"email_trusted" boolean NOT NULL,
	-- The claim that decides about roles; null: none does.
	"role_claim" text,
	-- Roles by the claim's values.
	"role_values" jsonb NOT NULL,
	-- Role of people without one by a claim; null: only members may sign in. One of owner, admin, developer, billing,
	-- viewer.
	"default_role" text,
	-- Everybody except owners signs in through it only.
	"required" boolean NOT NULL,
	CONSTRAINT "company_sign_in_revision_unique" UNIQUE("revision")
);
--> statement-breakpoint
-- A mail to an account's owners, admins and billing members when its balance falls below a threshold: once for each
-- time it falls.
CREATE TABLE "credit_alert" (
	"account_id" text PRIMARY KEY NOT NULL,
	"threshold_nano_usd" bigint NOT NULL,
	-- True while the credit was last seen above the threshold.
	"armed" boolean DEFAULT true NOT NULL,
	"last_sent_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "invitation" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- Only the person with this address can accept it.
	"email" text NOT NULL,
	-- One of owner, admin, developer, billing, viewer.
	"role" text NOT NULL,
	-- SHA-256 of the token in the link.
	"token_hash" text NOT NULL,
	"invited_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "invitation_token_hash_unique" UNIQUE("token_hash"),
	CONSTRAINT "invitation_account_email" UNIQUE("account_id","email")
);
--> statement-breakpoint
-- Members of an account.
CREATE TABLE "member" (
	"user_id" text NOT NULL,
	"account_id" text NOT NULL,
	-- One of owner, admin, developer, billing, viewer.
	"role" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "member_user_id_account_id_pk" PRIMARY KEY("user_id","account_id")
);
--> statement-breakpoint
-- Batches that ended and whose notices are not made yet. Written by the statement that ends one.
CREATE TABLE "batch_end" (
	"batch_id" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
-- Notices to send or sent: a mail to one person, or a call of the account's webhook.
CREATE TABLE "batch_notice" (
	"batch_id" text NOT NULL,
	-- One of mail, webhook.
	"channel" text NOT NULL,
	-- Recipient of a mail; null for a webhook.
	"user_id" text DEFAULT '' NOT NULL,
	"account_id" text NOT NULL,
	-- One of waiting, sent, failed.
	"state" text DEFAULT 'waiting' NOT NULL,
	-- Attempts that began, whatever their outcome.
	"attempts" integer DEFAULT 0 NOT NULL,
	-- Time of the next attempt. Moved forward when an attempt begins, so that one that dies with its console is
	-- repeated.
	"next_at" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"tried_at" timestamp with time zone,
	-- The webhook's last HTTP status.
	"answer" integer,
	-- For other events than batches: type and content. `batch_id` is then the event's own id.
	"type" text,
	"data" jsonb,
	-- Why the last attempt failed: a code of ours, never text from outside.
	"problem" text,
	CONSTRAINT "batch_notice_batch_id_channel_user_id_pk" PRIMARY KEY("batch_id","channel","user_id")
);
--> statement-breakpoint
-- An account's settings for notices: the ends of batches, and other events. Without a row there are none. The tables
-- are named after batches, the first kind of notice.
CREATE TABLE "batch_notice_setting" (
	"account_id" text PRIMARY KEY NOT NULL,
	-- `maker`: the maker of the batch's key; `owners`: members whose role receives notices (`notices.get`); null: no
	-- mail. One of maker, owners.
	"mail" text,
	-- Null: no webhook.
	"webhook_url" text,
	-- The signing secret is derived from it; worth nothing without the console's own secret.
	"webhook_salt" text,
	-- Types of further events, sent to the webhook and by mail to members with a paying role.
	"events" jsonb DEFAULT '[]'::jsonb NOT NULL,
	-- When they were chosen: earlier events give no notice.
	"events_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- The projects in which an account's members work. A member who leaves the account leaves its projects.
CREATE TABLE "project_member" (
	"project_id" text NOT NULL,
	"user_id" text NOT NULL,
	-- The project's account.
	"account_id" text NOT NULL,
	"joined_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "project_member_project_id_user_id_pk" PRIMARY KEY("project_id","user_id")
);
--> statement-breakpoint
-- A way to sign in: a password, or an identity at another service.
CREATE TABLE "auth_account" (
	"id" text PRIMARY KEY NOT NULL,
	-- The person's id at the provider.
	"account_id" text NOT NULL,
	"provider_id" text NOT NULL,
	"user_id" text NOT NULL,
	"access_token" text,
	"refresh_token" text,
	"id_token" text,
	"access_token_expires_at" timestamp with time zone,
	"refresh_token_expires_at" timestamp with time zone,
	"scope" text,
	-- Scrypt.
	"password" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- A person who signs in. Customers' data belong to accounts, of which a person is a member.
CREATE TABLE "console_user" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"email_verified" boolean DEFAULT false NOT NULL,
	"image" text,
	"two_factor_enabled" boolean DEFAULT false NOT NULL,
	-- Sees and manages the whole service. Set on the command line only.
	"operator" boolean DEFAULT false NOT NULL,
	-- The person's language; null: no choice, so the browser's languages decide.
	"language" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "console_user_email_unique" UNIQUE("email")
);
--> statement-breakpoint
-- A passkey of a person's device, for signing in.
CREATE TABLE "passkey" (
	-- The credential's id, base64url.
	"id" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"name" text NOT NULL,
	-- COSE, base64url.
	"public_key" text NOT NULL,
	-- The device's own counter; 0 where it has none.
	"counter" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone
);
--> statement-breakpoint
-- Number of events within a window that begins with the first (`src/console/rate-counter.ts`).
CREATE TABLE "rate_count" (
	-- The kind of event, and the SHA-256 of its subject.
	"key" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"started_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- The sign-in library's own limits by address. It deletes rows older than its longest window.
CREATE TABLE "rate_limit" (
	"id" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"count" integer NOT NULL,
	-- Milliseconds since 1970.
	"last_request" bigint NOT NULL,
	CONSTRAINT "rate_limit_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "session" (
	"id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"user_id" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ip_address" text,
	"user_agent" text,
	-- When the password was last entered again; null: not since the session began.
	"authenticated_at" timestamp with time zone,
	-- The `company_sign_in.revision` of a company's sign-in, which opens only that account. Null: the person's own
	-- sign-in.
	"company_revision" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "session_token_unique" UNIQUE("token")
);
--> statement-breakpoint
-- A sign-up that is not verified. It makes no user and gives no right until the mail's link is opened. Several may
-- exist for one address, of its owner and of others.
CREATE TABLE "sign_up" (
	-- SHA-256 of the token in the mail.
	"token_hash" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	-- Scrypt. Valid only with the browser that chose it.
	"password" text NOT NULL,
	-- Version of the accepted terms; null where none were required.
	"terms_version" text,
	-- SHA-256 of the cookie of the browser that signed up.
	"browser_hash" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- Accepted terms of the operator: person, version, time.
CREATE TABLE "terms_acceptance" (
	"user_id" text NOT NULL,
	"version" text NOT NULL,
	"accepted_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "terms_acceptance_user_id_version_pk" PRIMARY KEY("user_id","version")
);
--> statement-breakpoint
-- Secrets of one-time codes, encrypted under the console's secret.
CREATE TABLE "two_factor" (
	"id" text PRIMARY KEY NOT NULL,
	"secret" text NOT NULL,
	"backup_codes" text NOT NULL,
	"user_id" text NOT NULL,
	"verified" boolean DEFAULT true
);
--> statement-breakpoint
-- One-time values: verification of an address, reset of a password, the way back from another service.
CREATE TABLE "verification" (
	"id" text PRIMARY KEY NOT NULL,
	"identifier" text NOT NULL,
	"value" text NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- The billing details on an account's receipts and statements.
CREATE TABLE "billing_details" (
	"account_id" text PRIMARY KEY NOT NULL,
	"company" text NOT NULL,
	-- In lines.
	"address" text NOT NULL,
	"vat_id" text NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- An account's closed month (UTC): its sums, written once, when its days are sealed. Rows recorded later belong to a
-- later month's statement.
CREATE TABLE "closed_month" (
	"account_id" text NOT NULL,
	-- Its first day.
	"month" date NOT NULL,
	-- Of requests that were admitted in it.
	"usage_nano_usd" bigint NOT NULL,
	-- Of all requests that were admitted before its end.
	"usage_to_date_nano_usd" bigint NOT NULL,
	"closing_nano_usd" bigint NOT NULL,
	"closed_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "closed_month_account_id_month_pk" PRIMARY KEY("account_id","month")
);
--> statement-breakpoint
-- Recent speeds of models: completed streamed answers, counted by hour and size. `usage_fold` adds them with the
-- hourly sums, and removes rows older than two days.
CREATE TABLE "model_speed" (
	"hour" timestamp with time zone NOT NULL,
	"model" text NOT NULL,
	-- first_token: milliseconds to the first token. rate: tokens a second after it, of answers with 16 tokens and
	-- more. One of first_token, rate.
	"kind" text NOT NULL,
	-- ⌊20 × log₁₀ of the value⌋: each bucket is 12 % wide.
	"bucket" smallint NOT NULL,
	"requests" bigint NOT NULL,
	CONSTRAINT "model_speed_hour_model_kind_bucket_pk" PRIMARY KEY("hour","model","kind","bucket")
);
--> statement-breakpoint
-- Position of `usage_hour`; one row.
CREATE TABLE "usage_cursor" (
	"id" smallint PRIMARY KEY NOT NULL,
	-- Every transaction below this number had ended at the last fold; null before the first one.
	"horizon" bigint,
	-- No transaction had this number at the last fold.
	"newest" bigint,
	-- When the last fold ran; a minute after the beginning of the oldest transaction with a row then, if that is
	-- earlier.
	"folded_at" timestamp with time zone
);
--> statement-breakpoint
-- Usage summed by the hour of admission. `usage_fold` keeps it up to date from `usage_event`, each row once.
CREATE TABLE "usage_hour" (
	"account_id" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	-- ok: finished. left: the client disconnected. failed: anything else.
	"class" text NOT NULL,
	"requests" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"completion_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint NOT NULL,
	"duration_ms" double precision NOT NULL,
	"first_token_ms" double precision NOT NULL,
	-- Requests that had a first token.
	"first_tokens" bigint NOT NULL,
	CONSTRAINT "usage_hour_account_id_hour_key_id_model_class_pk" PRIMARY KEY("account_id","hour","key_id","model","class")
);
--> statement-breakpoint
-- The part of `usage_hour` that was used in projects, by the key's project at admission. The rest of an hour was used
-- in none (`usage_split`). A separate table: accounts without projects have no rows here.
CREATE TABLE "usage_project_hour" (
	"account_id" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"project_id" text NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	-- ok: finished. left: the client disconnected. failed: anything else.
	"class" text NOT NULL,
	"requests" bigint NOT NULL,
	"prompt_tokens" bigint NOT NULL,
	"cached_tokens" bigint NOT NULL,
	"completion_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint NOT NULL,
	"duration_ms" double precision NOT NULL,
	"first_token_ms" double precision NOT NULL,
	-- Requests that had a first token.
	"first_tokens" bigint NOT NULL,
	CONSTRAINT "usage_project_hour_pk" PRIMARY KEY("account_id","hour","project_id","key_id","model","class")
);
--> statement-breakpoint
-- The sum of an account's hours, so that a running balance need not read all of them. Triggers of `usage_hour` keep
-- it.
CREATE TABLE "usage_total" (
	"account_id" text PRIMARY KEY NOT NULL,
	"charged_nano_usd" bigint NOT NULL
);
--> statement-breakpoint
-- Each gateway's models and the state of its servers, for the console. Written on change; no decision depends on it.
-- The row of a gateway that left stays, to be shown when no gateway is live.
CREATE TABLE "gateway_report" (
	"instance_id" text PRIMARY KEY NOT NULL,
	"models" jsonb NOT NULL,
	-- As `ReplicaView`.
	"replicas" jsonb NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- Space used by an account's files. The empty id counts all accounts.
CREATE TABLE "file_space" (
	"account_id" text PRIMARY KEY NOT NULL,
	"files" integer DEFAULT 0 NOT NULL,
	"bytes" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
-- Blobs in Postgres, cut into pieces.
CREATE TABLE "stored_blob" (
	"file_id" text NOT NULL,
	"name" text NOT NULL,
	"piece" integer NOT NULL,
	"bytes" "bytea" NOT NULL,
	CONSTRAINT "stored_blob_file_id_name_piece_pk" PRIMARY KEY("file_id","name","piece")
);
--> statement-breakpoint
-- Files of accounts. Their bytes are encrypted in a store.
CREATE TABLE "stored_file" (
	-- `file_…`, sortable by time.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- The key that made it.
	"key_id" text NOT NULL,
	-- `batch` or `batch_output`.
	"purpose" text NOT NULL,
	-- The client's name, shortened; the only text of a client in this table.
	"filename" text NOT NULL,
	-- `writing` until the last part is sealed, then `ready`; `removed` while its bytes are being deleted.
	"state" text NOT NULL,
	-- Store of its bytes: `disk`, `postgres` or `s3`.
	"store" text NOT NULL,
	-- Bytes of sealed parts.
	"bytes" bigint DEFAULT 0 NOT NULL,
	"parts" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	-- When it expires. While it is written: when its writer counts as dead. Once removed: when that was.
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- Sealed parts of a file, which never change.
CREATE TABLE "stored_file_part" (
	"file_id" text NOT NULL,
	"number" integer NOT NULL,
	-- Offset in the file.
	"start" bigint NOT NULL,
	"bytes" integer NOT NULL,
	-- Name in the store, a new one for each attempt, so that attempts do not overwrite each other.
	"blob" text NOT NULL,
	CONSTRAINT "stored_file_part_file_id_number_pk" PRIMARY KEY("file_id","number")
);
--> statement-breakpoint
-- Used `Idempotency-Key`s, for a day. Neither the header nor the prompt can be read from a row. The answer can be
-- decrypted only with the customer's secret and the header, which are not stored
-- (`src/gateway/idempotency/seal.ts`).
CREATE TABLE "idempotency_claim" (
	-- SHA-256 of the API key's id and the header, hex.
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- Keyed digest of path and body; the key is not stored.
	"proof" text NOT NULL,
	-- The first of 256 request ids for its attempts: its last byte is 0.
	"request_id" uuid NOT NULL,
	-- The serving instance.
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	-- unkept: answered and charged; the answer is too large, or was removed for newer ones. One of running, answered,
	-- unkept.
	"state" text DEFAULT 'running' NOT NULL,
	-- Sealed.
	"answer" "bytea",
	"bytes" integer DEFAULT 0 NOT NULL,
	"claimed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
-- Bytes of an account's kept answers.
CREATE TABLE "idempotency_space" (
	"account_id" text PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL
);
--> statement-breakpoint
-- A paying customer. The account's credit is the budget of the same id.
CREATE TABLE "account" (
	-- `acc_…`
	"id" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	-- One of active, suspended.
	"state" text DEFAULT 'active' NOT NULL,
	-- Null until a member of the account signed in; an operator's command counts as signing in.
	"signed_in_at" timestamp with time zone,
	-- True once a top-up of at least USD 100 was confirmed; never goes back.
	"topped_up" boolean DEFAULT false NOT NULL,
	-- The time zone of its caps' days, weeks and months: an IANA name.
	"time_zone" text DEFAULT 'UTC' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "account_email_unique" UNIQUE("email")
);
--> statement-breakpoint
-- An instance's share of a key's limit. The shares of a key and kind never pass the limit together. No row: no share.
-- A lost instance's share goes on counting for its last minutes, see `src/db/functions/limits.sql`.
CREATE TABLE "key_share" (
	"key_id" text NOT NULL,
	-- Requests a minute, or concurrent requests. One of rate, running.
	"kind" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"amount" integer NOT NULL,
	-- The instance's own number of the request: an older one changes nothing.
	"seq" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "key_share_key_id_kind_instance_id_epoch_pk" PRIMARY KEY("key_id","kind","instance_id","epoch")
);
--> statement-breakpoint
-- An API key. Its lifetime cap is the budget of the same id; each period of a renewing cap has its own. The secret
-- itself is stored nowhere.
CREATE TABLE "api_key" (
	-- `key_…`
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	-- HMAC-SHA-256 of the secret under the pepper, in hex.
	"digest" text NOT NULL,
	-- The displayable part of the secret: its beginning and its last four characters.
	"prefix" text NOT NULL,
	"last_four" text NOT NULL,
	-- One of active, revoked.
	"state" text DEFAULT 'active' NOT NULL,
	-- The owner's cap; null: none. The limit in force is the budget's.
	"cap_nano_usd" bigint,
	-- How often the cap renews. One of lifetime, day, week, month.
	"cap_period" text DEFAULT 'lifetime' NOT NULL,
	-- Null: its account's own.
	"project_id" text,
	-- Model ids; empty means all.
	"models" jsonb DEFAULT '[]'::jsonb NOT NULL,
	-- When the key ends: its expiry, or the end of a rotated key's grace.
	"expires_at" timestamp with time zone,
	"requests_per_minute" integer,
	"concurrency_max" integer,
	-- True for a read-only key; its cap is 0.
	"reads_only" boolean DEFAULT false NOT NULL,
	-- The key that replaces this one after a rotation.
	"replaced_by" text,
	-- Coarse: the hourly sums write it.
	"last_used_at" timestamp with time zone,
	-- The person who made it, for members who may see only their own keys; a replacement keeps the person. Null: made
	-- by no person.
	"made_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "api_key_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
-- Token of a repeatable creation, in the management interface or on a page, for a day. A client that sends a token
-- again gets the first result.
CREATE TABLE "management_claim" (
	-- Keyed digest of the management key, or of the page's user, and the client's token.
	"id" text PRIMARY KEY NOT NULL,
	-- Keyed digest of the request's content.
	"request" text NOT NULL,
	-- The id of the new object, chosen before it is made.
	"subject" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- A key of the management interface. It belongs to the operators and to no account; the secret is stored nowhere.
CREATE TABLE "management_key" (
	-- `mgk_…`: the actor in the audit log.
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	-- HMAC-SHA-256 of the secret under the pepper, in hex.
	"digest" text NOT NULL,
	-- The displayable part of the secret: its beginning and its last four characters.
	"prefix" text NOT NULL,
	"last_four" text NOT NULL,
	"scopes" jsonb DEFAULT '[]'::jsonb NOT NULL,
	-- When it expires.
	"expires_at" timestamp with time zone,
	-- The operator with whose rights it acts, or `cli`.
	"made_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- Coarse: to the minute.
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "management_key_digest_unique" UNIQUE("digest")
);
--> statement-breakpoint
-- Keys of an account with a common budget: their spending counts against the project's cap, too. Its lifetime cap is
-- the budget of the same id.
CREATE TABLE "project" (
	-- `proj_…`
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	-- An archived project's state refuses its keys, whatever their own state is. One of active, archived.
	"state" text DEFAULT 'active' NOT NULL,
	-- Null: no cap.
	"cap_nano_usd" bigint,
	-- One of lifetime, day, week, month.
	"cap_period" text DEFAULT 'lifetime' NOT NULL,
	-- Ids of the models that its keys may use; empty means all.
	"models" jsonb DEFAULT '[]'::jsonb NOT NULL,
	-- For all its keys together.
	"requests_per_minute" integer,
	"concurrency_max" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
-- The result of a check of the books.
CREATE TABLE "reconciliation_run" (
	-- `rec_…`, so sorted by time.
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"ok" boolean NOT NULL,
	-- A user's id, or `timer`.
	"by" text NOT NULL,
	"checks" jsonb NOT NULL
);
--> statement-breakpoint
-- Anything with a hard limit from which requests reserve: an account's credit, a key's or a project's lifetime cap,
-- the present period of a renewing cap. The id is the account's, key's or project's own; for a period
-- `<owner>:<period>:<first day>`. `drawn` is what instances hold in open leases plus what was spent: Σ open (granted
-- − returned) + Σ closed settled, plus late settlements. So `available = limit − drawn`, and a settlement does not
-- touch this row.
CREATE TABLE "budget" (
	"id" text PRIMARY KEY NOT NULL,
	-- One of account, key, project.
	"kind" text NOT NULL,
	-- The account that it belongs to; an account's own id for its credit.
	"account_id" text NOT NULL,
	-- Account: the sum of its ledger entries. Key and project: the cap, null for none.
	"limit_nano_usd" bigint,
	-- The limit ends when all live instances have applied this control entry: from then on they reserve from the
	-- cap's periods.
	"lift_seq" bigint,
	-- For periods: the owner of the cap, the kind of period, its first day in the account's time zone.
	"owner_id" text,
	-- One of day, week, month.
	"period" text,
	"period_start" date,
	"drawn_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- Cost of late settlements beyond what was available: the operator's write-off.
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "budget_drawn_not_negative" CHECK ("budget"."drawn_nano_usd" >= 0),
	CONSTRAINT "budget_account_has_limit" CHECK ("budget"."kind" <> 'account' or "budget"."limit_nano_usd" is not null)
);
--> statement-breakpoint
-- Every movement of an account's credit that is not usage. Append-only; the sum is the budget's limit.
CREATE TABLE "ledger_entry" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	-- One of top_up, refund, adjustment, dispute, credit_note.
	"kind" text NOT NULL,
	-- Positive adds credit.
	"amount_nano_usd" bigint NOT NULL,
	-- Unique source: a payment, a transfer's reference, a recovered request.
	"source_ref" text NOT NULL,
	-- The actor: an operator's id, `stripe`, `cli`, `recovery`.
	"actor" text NOT NULL,
	"note" text DEFAULT '' NOT NULL,
	"created_at" timestamp with time zone DEFAULT books_now() NOT NULL,
	CONSTRAINT "ledger_entry_source_ref_unique" UNIQUE("source_ref")
);
--> statement-breakpoint
-- An instance's slice of a budget: credit that the instance may spend without a query. One row for each budget and
-- instance epoch. It is open while something is left: a statement that empties it closes it, and the next grant opens
-- it again.
CREATE TABLE "lease" (
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- Only this instance's settlements change it, so instances never wait for each other.
	"settled_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- One of open, closed.
	"state" text DEFAULT 'open' NOT NULL,
	-- The newest recall that this instance has answered: everything that was idle here then has been returned.
	"recalled" bigint DEFAULT 0 NOT NULL,
	-- Its sums are in `sealed_budget`. A trigger takes them out of there when a late settlement changes the lease.
	"sealed" boolean DEFAULT false NOT NULL,
	CONSTRAINT "lease_budget_id_instance_id_epoch_pk" PRIMARY KEY("budget_id","instance_id","epoch"),
	CONSTRAINT "lease_covers_settled" CHECK ("lease"."granted_nano_usd" - "lease"."returned_nano_usd" - "lease"."settled_nano_usd" >= 0)
);
--> statement-breakpoint
-- Each grant and return that was carried out, so that a repetition changes nothing.
CREATE TABLE "lease_op" (
	"id" uuid PRIMARY KEY NOT NULL,
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	-- One of grant, return.
	"kind" text NOT NULL,
	"amount_nano_usd" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT books_now() NOT NULL
);
--> statement-breakpoint
-- Recalls: an instance lacks credit of a budget and requests idle credit from the others. A row stays for a minute. An
-- instance that answers ticket n has returned what was idle after n was taken. So a lower number that appears later is
-- answered too.
CREATE TABLE "recall" (
	"budget_id" text NOT NULL,
	"ticket" bigint NOT NULL,
	-- The recalling instance.
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "recall_budget_id_ticket_pk" PRIMARY KEY("budget_id","ticket")
);
--> statement-breakpoint
-- Settlements that came after requests of their time were removed. Most were in the books once, which cannot be seen
-- any more, so none is charged. Repetitions count each time.
CREATE TABLE "refused_settlement" (
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"requests" bigint NOT NULL,
	-- What they would have cost.
	"charged_nano_usd" bigint NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "refused_settlement_instance_id_epoch_pk" PRIMARY KEY("instance_id","epoch")
);
--> statement-breakpoint
-- Position of the removal of old books rows. One row, made by the first removal. `src/ledger/closed-days.md` describes the
-- order.
CREATE TABLE "removal" (
	"id" smallint PRIMARY KEY NOT NULL,
	-- Requests that were admitted before are not settled any more: they may have been, and their rows removed. Never
	-- goes back.
	"usage_before" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	-- When `usage_before` was set. Settlements under the former value have ended some time after it.
	"usage_said_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	-- Hourly sums before this moment stay as they are, and requests of before are removed.
	"usage_frozen" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	-- The last settled request that the removal looked at.
	"usage_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"usage_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	-- The last operation on a lease that the present round looked at.
	"op_at" timestamp with time zone DEFAULT '-infinity' NOT NULL,
	"op_id" uuid DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
	-- When that round began.
	"op_round_at" timestamp with time zone DEFAULT '-infinity' NOT NULL
);
--> statement-breakpoint
-- Position of the seals. One row, made with the first day. Rows before it are in `sealed_…`, all later ones are open.
CREATE TABLE "seal_cursor" (
	"id" smallint PRIMARY KEY NOT NULL,
	-- The day that is sealed next.
	"day" date NOT NULL,
	-- Ledger entries are open from here on.
	"entries_from" timestamp with time zone NOT NULL,
	-- No row is recorded with an earlier moment, whatever the server's clock says.
	"closed_until" timestamp with time zone NOT NULL,
	-- The last settled request that was added, and the day's sums so far.
	"usage_at" timestamp with time zone NOT NULL,
	"usage_id" uuid NOT NULL,
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	-- The same for operations on leases.
	"op_at" timestamp with time zone NOT NULL,
	"op_id" uuid NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
-- Position of the present round of reading sealed days again; one row.
CREATE TABLE "seal_round" (
	"id" smallint PRIMARY KEY NOT NULL,
	"day" date NOT NULL,
	"usage_at" timestamp with time zone NOT NULL,
	"usage_id" uuid NOT NULL,
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	-- After the last day come the budgets: the last one compared.
	"budget_id" text DEFAULT '' NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
-- Sums of a budget's sealed rows.
CREATE TABLE "sealed_budget" (
	"budget_id" text PRIMARY KEY NOT NULL,
	-- The sum of its sealed ledger entries; 0 for a key's.
	"entries_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- What its sealed leases have spent.
	"spent_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- The part of that whose leases are removed.
	"removed_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- How its rows differed when they were last read again; null if they agreed.
	"problem" text
);
--> statement-breakpoint
-- A closed day (UTC) of the books: its sums, a hash over its rows, and a seal over both and the previous day's seal.
-- `books_seal` writes it, once; `src/ledger/closed-days.md` says what is hashed.
CREATE TABLE "sealed_day" (
	"day" date PRIMARY KEY NOT NULL,
	-- Settled requests, without those attested as lost at no charge: a settlement may still replace these.
	"usage_rows" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"usage_hash" "bytea" NOT NULL,
	"entry_rows" bigint DEFAULT 0 NOT NULL,
	"top_up_nano_usd" bigint DEFAULT 0 NOT NULL,
	"refund_nano_usd" bigint DEFAULT 0 NOT NULL,
	"adjustment_nano_usd" bigint DEFAULT 0 NOT NULL,
	"dispute_nano_usd" bigint DEFAULT 0 NOT NULL,
	"credit_note_nano_usd" bigint DEFAULT 0 NOT NULL,
	"entry_hash" "bytea" NOT NULL,
	-- Sums of grants and returns of leases; no customer's history contains them.
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	-- SHA-256 over all of the above and the seal of the day before.
	"seal" "bytea" NOT NULL,
	"sealed_at" timestamp with time zone DEFAULT now() NOT NULL,
	-- When its rows were last read again.
	"verified_at" timestamp with time zone,
	-- How they differed from the row; null if they agreed.
	"problem" text,
	-- When its files were last seen complete in the archive; null: never.
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
-- Sums of a lease's sealed rows, while the lease itself is not sealed.
CREATE TABLE "sealed_lease" (
	"budget_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"granted_nano_usd" bigint DEFAULT 0 NOT NULL,
	"returned_nano_usd" bigint DEFAULT 0 NOT NULL,
	"charged_nano_usd" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "sealed_lease_budget_id_instance_id_epoch_pk" PRIMARY KEY("budget_id","instance_id","epoch")
);
--> statement-breakpoint
-- Requests that were running at the last flush: their reserved amounts. Never the authority on money.
CREATE TABLE "reservation" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"model" text NOT NULL,
	"reserved_nano_usd" bigint NOT NULL,
	"admitted_at" timestamp with time zone NOT NULL,
	-- As in `usage_event`; the key may be in another project by now.
	"project_id" text
);
--> statement-breakpoint
-- One settled request: the authority on what it cost. Written once, by its id; no prompt or answer is ever stored.
-- `src/ledger/usage-fields.ts` describes the columns.
CREATE TABLE "usage_event" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"instance_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"model" text NOT NULL,
	"rate_card_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"streamed" boolean NOT NULL,
	"reserved_nano_usd" bigint NOT NULL,
	"charged_nano_usd" bigint NOT NULL,
	"written_off_nano_usd" bigint DEFAULT 0 NOT NULL,
	"basis" text NOT NULL,
	"ending" text NOT NULL,
	"status" integer NOT NULL,
	"prompt_tokens" integer DEFAULT 0 NOT NULL,
	"cached_tokens" integer DEFAULT 0 NOT NULL,
	"completion_tokens" integer DEFAULT 0 NOT NULL,
	"reasoning_tokens" integer DEFAULT 0 NOT NULL,
	"units" integer DEFAULT 0 NOT NULL,
	"replica" text,
	"batch_id" text,
	"budgets" text[],
	-- The project of its key at admission; null for none.
	"project_id" text,
	"admitted_at" timestamp with time zone NOT NULL,
	"first_token_ms" real,
	"duration_ms" real DEFAULT 0 NOT NULL,
	"settled_at" timestamp with time zone DEFAULT books_now() NOT NULL,
	CONSTRAINT "usage_charged_within_reserved" CHECK ("usage_event"."charged_nano_usd" >= 0 and "usage_event"."reserved_nano_usd" >= "usage_event"."charged_nano_usd")
);
--> statement-breakpoint
-- Audit events. Append-only, except for the outcome of an act. One row for every act of an operator, on a key, or of
-- a payment service.
CREATE TABLE "audit_event" (
	-- `aud_…`, so sorted by time.
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	-- A user's id, or `stripe`.
	"actor" text NOT NULL,
	-- `key.create`, `topup.confirm` …
	"action" text NOT NULL,
	-- The id of the key, account, top-up or payment.
	"subject" text NOT NULL,
	"account_id" text,
	"ip" text,
	-- Never a secret.
	"detail" jsonb NOT NULL
);
--> statement-breakpoint
-- Requests of known keys that were refused before admission, so that nothing was reserved for them. For people to
-- read, kept for a month, never the authority on anything. No part of a prompt is stored.
CREATE TABLE "refused_request" (
	"request_id" uuid PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	-- The project that the key belonged to; null for none.
	"project_id" text,
	-- As requested, shortened; null where the request was refused before its model was read.
	"model" text,
	-- As in `usage_event`.
	"endpoint" text NOT NULL,
	-- The error's code, as `insufficient_quota`.
	"code" text NOT NULL,
	-- HTTP.
	"status" integer NOT NULL,
	-- The message that the client got.
	"message" text NOT NULL,
	"param" text,
	-- Available and needed amounts, where credit or a cap did not suffice; else null.
	"available_nano_usd" bigint,
	"held_nano_usd" bigint,
	"required_nano_usd" bigint,
	-- The `max_tokens` that would have fitted.
	"affordable_tokens" integer,
	"refused_at" timestamp with time zone NOT NULL,
	-- Further refusals of the same key with the same code in the same minute, which got no row of their own.
	"repeats" integer DEFAULT 0 NOT NULL,
	-- The last of them.
	"repeated_at" timestamp with time zone
);
--> statement-breakpoint
-- State of one part of the service on one day: one bit per minute (UTC), the first minute first. Instances combine
-- their observations by OR, so that repeated writes change nothing. A minute without a bit in `observed` was seen by no
-- instance.
CREATE TABLE "status_day" (
	"day" date NOT NULL,
	-- `service`, `endpoint:<name>` or `model:<id>`.
	"subject" text NOT NULL,
	"observed" bit(1440) NOT NULL,
	-- Some instance found it operational or degraded.
	"serving" bit(1440) NOT NULL,
	-- Some instance found it operational.
	"operational" bit(1440) NOT NULL,
	CONSTRAINT "status_day_day_subject_pk" PRIMARY KEY("day","subject")
);
--> statement-breakpoint
ALTER TABLE "company_sign_in" ADD CONSTRAINT "company_sign_in_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "credit_alert" ADD CONSTRAINT "credit_alert_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "member" ADD CONSTRAINT "member_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "batch_notice_setting" ADD CONSTRAINT "batch_notice_setting_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_member" ADD CONSTRAINT "project_member_user_id_account_id_member_user_id_account_id_fk" FOREIGN KEY ("user_id","account_id") REFERENCES "member"("user_id","account_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "auth_account" ADD CONSTRAINT "auth_account_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "passkey" ADD CONSTRAINT "passkey_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session" ADD CONSTRAINT "session_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "terms_acceptance" ADD CONSTRAINT "terms_acceptance_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "two_factor" ADD CONSTRAINT "two_factor_user_id_console_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "console_user"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "billing_details" ADD CONSTRAINT "billing_details_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "closed_month" ADD CONSTRAINT "closed_month_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_project_id_project_id_fk" FOREIGN KEY ("project_id") REFERENCES "project"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project" ADD CONSTRAINT "project_account_id_account_id_fk" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "batch_account" ON "batch" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "batch_open" ON "batch" USING btree ("id") WHERE "batch"."state" in ('validating', 'in_progress', 'finalizing', 'cancelling');--> statement-breakpoint
CREATE INDEX "credit_adjustment_state" ON "credit_adjustment" USING btree ("state","id");--> statement-breakpoint
CREATE INDEX "credit_adjustment_first" ON "credit_adjustment" USING btree ("first_by","first_at");--> statement-breakpoint
CREATE INDEX "auto_top_up_look" ON "auto_top_up" USING btree ("look_at") WHERE "auto_top_up"."state" = 'on' and "auto_top_up"."look_at" is not null;--> statement-breakpoint
CREATE INDEX "auto_top_up_tell" ON "auto_top_up" USING btree ("changed_at") WHERE "auto_top_up"."tell" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "auto_top_up_attempt_open" ON "auto_top_up_attempt" USING btree ("account_id") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_look" ON "auto_top_up_attempt" USING btree ("look_at") WHERE "auto_top_up_attempt"."state" in ('begun', 'sent', 'unknown', 'needs_authentication');--> statement-breakpoint
CREATE INDEX "auto_top_up_attempt_account" ON "auto_top_up_attempt" USING btree ("account_id","begun_at");--> statement-breakpoint
CREATE INDEX "card_setup_look" ON "card_setup" USING btree ("look_at") WHERE "card_setup"."state" = 'open';--> statement-breakpoint
CREATE INDEX "card_setup_account" ON "card_setup" USING btree ("account_id") WHERE "card_setup"."state" = 'open';--> statement-breakpoint
CREATE INDEX "stripe_dispute_payment" ON "stripe_dispute" USING btree ("payment_id");--> statement-breakpoint
-- Disputes with something to book.
CREATE INDEX "stripe_dispute_owed" ON "stripe_dispute" USING btree ("payment_id") WHERE ("stripe_dispute"."booked" = 'nothing' and "stripe_dispute"."state" <> 'won') or ("stripe_dispute"."booked" = 'taken' and "stripe_dispute"."state" = 'won');--> statement-breakpoint
CREATE INDEX "stripe_finding_open" ON "stripe_finding" USING btree ("found_at") WHERE "stripe_finding"."resolved_at" is null;--> statement-breakpoint
-- Payments with something owed: few, and read every few seconds.
CREATE INDEX "stripe_payment_owed" ON "stripe_payment" USING btree ("id") WHERE "stripe_payment"."booked_refund_cents" < "stripe_payment"."refunded_cents";--> statement-breakpoint
-- Case and signs between letters and digits are ignored.
CREATE UNIQUE INDEX "top_up_check_transaction" ON "top_up_check" USING btree (upper(regexp_replace("transaction_reference", '[^A-Za-z0-9]', '', 'g')));--> statement-breakpoint
CREATE INDEX "top_up_account" ON "top_up" USING btree ("account_id","created_at");--> statement-breakpoint
-- Pending top-ups only.
CREATE INDEX "top_up_state" ON "top_up" USING btree ("state","id");--> statement-breakpoint
-- For checks of the books.
CREATE INDEX "top_up_booked" ON "top_up" USING btree ("decided_at") WHERE "top_up"."state" in ('confirmed', 'refunded', 'disputed');--> statement-breakpoint
-- Case and blanks are ignored.
CREATE UNIQUE INDEX "top_up_same_reference" ON "top_up" USING btree (upper(regexp_replace("reference", '[[:space:]]', '', 'g')));--> statement-breakpoint
CREATE INDEX "instance_beat_unfinished" ON "instance_beat" USING btree ("state") WHERE "instance_beat"."state" <> 'left';--> statement-breakpoint
-- For the removal of old marks.
CREATE INDEX "alert_mark_at" ON "alert_mark" USING btree ("at");--> statement-breakpoint
CREATE INDEX "alert_touched_account" ON "alert_touched" USING btree ("account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "company_sign_in_domain" ON "company_sign_in" USING btree ("domain") WHERE "company_sign_in"."domain_verified_at" is not null;--> statement-breakpoint
CREATE INDEX "member_account" ON "member" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "batch_notice_due" ON "batch_notice" USING btree ("channel","next_at") WHERE "batch_notice"."state" = 'waiting';--> statement-breakpoint
-- By its possible cause of delay: an account, a batch, or a retiring model that very many accounts used.
CREATE INDEX "batch_notice_lane" ON "batch_notice" USING btree ("channel",(case when "type" is null then 1 when "type" = 'model.retiring' then 2 else 0 end),"next_at") WHERE "batch_notice"."state" = 'waiting';--> statement-breakpoint
CREATE INDEX "batch_notice_account" ON "batch_notice" USING btree ("account_id","batch_id");--> statement-breakpoint
-- For the removal of old notices.
CREATE INDEX "batch_notice_created" ON "batch_notice" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "project_member_user" ON "project_member" USING btree ("user_id","account_id");--> statement-breakpoint
CREATE INDEX "auth_account_user" ON "auth_account" USING btree ("user_id");--> statement-breakpoint
-- Company sign-ins: a person has one for each provider, and an id at the provider is one person.
CREATE UNIQUE INDEX "auth_account_company" ON "auth_account" USING btree ("provider_id","account_id") WHERE "auth_account"."provider_id" like 'company:%';--> statement-breakpoint
CREATE UNIQUE INDEX "auth_account_company_user" ON "auth_account" USING btree ("provider_id","user_id") WHERE "auth_account"."provider_id" like 'company:%';--> statement-breakpoint
CREATE INDEX "passkey_user" ON "passkey" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "rate_count_started" ON "rate_count" USING btree ("started_at");--> statement-breakpoint
CREATE INDEX "session_user" ON "session" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "sign_up_email" ON "sign_up" USING btree ("email","created_at");--> statement-breakpoint
CREATE INDEX "sign_up_expiry" ON "sign_up" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "two_factor_user" ON "two_factor" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "verification_identifier" ON "verification" USING btree ("identifier");--> statement-breakpoint
-- A day of all accounts.
CREATE INDEX "usage_hour_hour" ON "usage_hour" USING btree ("hour");--> statement-breakpoint
-- For the newest hours with requests of a model and class, or to see that there are none: of an account, of a key.
CREATE INDEX "usage_hour_model" ON "usage_hour" USING btree ("account_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_hour_key" ON "usage_hour" USING btree ("key_id","model","class","hour");--> statement-breakpoint
-- As for `usage_hour`: of a project, of a key in it.
CREATE INDEX "usage_project_hour_model" ON "usage_project_hour" USING btree ("project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "usage_project_hour_key" ON "usage_project_hour" USING btree ("key_id","project_id","model","class","hour");--> statement-breakpoint
CREATE INDEX "stored_file_account" ON "stored_file" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "stored_file_expires" ON "stored_file" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_claim_expires" ON "idempotency_claim" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "idempotency_claim_answered" ON "idempotency_claim" USING btree ("account_id","claimed_at") WHERE "idempotency_claim"."state" = 'answered';--> statement-breakpoint
CREATE INDEX "api_key_account" ON "api_key" USING btree ("account_id");--> statement-breakpoint
-- Keys that end soon.
CREATE INDEX "api_key_expires" ON "api_key" USING btree ("expires_at") WHERE "api_key"."state" = 'active' and "api_key"."expires_at" is not null;--> statement-breakpoint
CREATE INDEX "api_key_project" ON "api_key" USING btree ("project_id") WHERE "api_key"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "project_account" ON "project" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reconciliation_run_broken" ON "reconciliation_run" USING btree ("ok","id");--> statement-breakpoint
CREATE INDEX "budget_account" ON "budget" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "budget_period" ON "budget" USING btree ("owner_id","period_start") WHERE "budget"."owner_id" is not null;--> statement-breakpoint
CREATE INDEX "ledger_entry_account" ON "ledger_entry" USING btree ("account_id","created_at");--> statement-breakpoint
-- For the seals of days.
CREATE INDEX "ledger_entry_created" ON "ledger_entry" USING btree ("created_at");--> statement-breakpoint
-- For the checks of the books.
CREATE INDEX "lease_unsealed" ON "lease" USING btree ("instance_id","epoch") WHERE not "lease"."sealed";--> statement-breakpoint
-- For what a budget has spent: the rest is in `sealed_budget`.
CREATE INDEX "lease_unsealed_budget" ON "lease" USING btree ("budget_id") WHERE not "lease"."sealed";--> statement-breakpoint
-- For the removal of old ones.
CREATE INDEX "lease_sealed" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."sealed";--> statement-breakpoint
-- Leases that still hold something when an epoch ends.
CREATE INDEX "lease_instance_open" ON "lease" USING btree ("instance_id","epoch") WHERE "lease"."state" = 'open';--> statement-breakpoint
CREATE INDEX "lease_open" ON "lease" USING btree ("budget_id") WHERE "lease"."state" = 'open';--> statement-breakpoint
CREATE INDEX "lease_op_lease" ON "lease_op" USING btree ("budget_id","instance_id","epoch");--> statement-breakpoint
-- For the seals of days.
CREATE INDEX "lease_op_at" ON "lease_op" USING btree ("at");--> statement-breakpoint
CREATE INDEX "recall_at" ON "recall" USING btree ("at");--> statement-breakpoint
CREATE INDEX "reservation_account" ON "reservation" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reservation_instance" ON "reservation" USING btree ("instance_id","epoch");--> statement-breakpoint
CREATE INDEX "usage_event_account" ON "usage_event" USING btree ("account_id","admitted_at");--> statement-breakpoint
CREATE INDEX "usage_event_key" ON "usage_event" USING btree ("key_id","admitted_at");--> statement-breakpoint
-- For the hourly sums, which read recently settled rows.
CREATE INDEX "usage_event_settled" ON "usage_event" USING btree ("settled_at");--> statement-breakpoint
-- Lines of a batch, among a day of other requests.
CREATE INDEX "usage_event_batch" ON "usage_event" USING btree ("batch_id","admitted_at","request_id") WHERE "usage_event"."batch_id" is not null;--> statement-breakpoint
-- A project's requests, among those of its account.
CREATE INDEX "usage_event_project" ON "usage_event" USING btree ("project_id","admitted_at","request_id") WHERE "usage_event"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "audit_event_subject" ON "audit_event" USING btree ("subject","id");--> statement-breakpoint
CREATE INDEX "audit_event_account" ON "audit_event" USING btree ("account_id","id");--> statement-breakpoint
CREATE INDEX "audit_event_actor" ON "audit_event" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "refused_request_account" ON "refused_request" USING btree ("account_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_key" ON "refused_request" USING btree ("key_id","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_model" ON "refused_request" USING btree ("account_id","model","refused_at","request_id");--> statement-breakpoint
CREATE INDEX "refused_request_project" ON "refused_request" USING btree ("project_id","refused_at","request_id") WHERE "refused_request"."project_id" is not null;--> statement-breakpoint
-- For the removal of old rows.
CREATE INDEX "refused_request_refused" ON "refused_request" USING btree ("refused_at");
--> statement-breakpoint

-- Rows that are updated again and again keep room on their page, so that an update need not touch the indexes.
ALTER TABLE "lease" SET (fillfactor = 60);
--> statement-breakpoint
ALTER TABLE "budget" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "api_key" SET (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "status_day" SET (fillfactor = 50);
--> statement-breakpoint
-- Encrypted bytes do not compress.
ALTER TABLE "stored_blob" ALTER COLUMN "bytes" SET STORAGE EXTERNAL;
--> statement-breakpoint
CREATE VIEW "instance_now" AS
	SELECT b.* FROM "instance_beat" b
	WHERE NOT EXISTS (SELECT 1 FROM "instance_beat" n WHERE n."id" = b."id" AND n."epoch" = b."epoch" AND n."beat" > b."beat");
--> statement-breakpoint
-- Appends the entries of a transaction with several statements to the control log when it commits.
CREATE FUNCTION control_append_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('tollgate.control_at_commit', 'off', true);
	PERFORM control_append(new.kind, new.subject, new.payload);
	DELETE FROM control_pending WHERE id = new.id;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE CONSTRAINT TRIGGER control_pending_commit AFTER INSERT ON control_pending
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION control_append_pending();
--> statement-breakpoint
-- A late settlement on a sealed lease, by whichever version, opens the lease again for the checks of the books.
CREATE FUNCTION lease_unseal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE sealed_budget b SET spent_nano_usd = b.spent_nano_usd - old.settled_nano_usd WHERE b.budget_id = old.budget_id;
	INSERT INTO sealed_lease AS x (budget_id, instance_id, epoch, granted_nano_usd, returned_nano_usd, charged_nano_usd)
		VALUES (old.budget_id, old.instance_id, old.epoch, old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
		ON CONFLICT (budget_id, instance_id, epoch) DO UPDATE SET granted_nano_usd = x.granted_nano_usd + excluded.granted_nano_usd,
			returned_nano_usd = x.returned_nano_usd + excluded.returned_nano_usd, charged_nano_usd = x.charged_nano_usd + excluded.charged_nano_usd;
	new.sealed := false;
	RETURN new;
END $$;
--> statement-breakpoint
CREATE TRIGGER lease_unseal BEFORE UPDATE ON lease FOR EACH ROW
	WHEN (old.sealed AND (old.granted_nano_usd, old.returned_nano_usd, old.settled_nano_usd)
		IS DISTINCT FROM (new.granted_nano_usd, new.returned_nano_usd, new.settled_nano_usd))
	EXECUTE FUNCTION lease_unseal();
--> statement-breakpoint
INSERT INTO "removal" ("id") VALUES (1);
--> statement-breakpoint
-- Triggers, so that whichever version changes the hourly sums keeps the totals too. The writer holds the row of usage_cursor.
CREATE FUNCTION usage_total_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF tg_op <> 'DELETE' THEN
		INSERT INTO usage_total AS t (account_id, charged_nano_usd)
			SELECT n.account_id, sum(n.charged_nano_usd) FROM new_hours n GROUP BY 1
			ON CONFLICT (account_id) DO UPDATE SET charged_nano_usd = t.charged_nano_usd + excluded.charged_nano_usd;
	END IF;
	IF tg_op <> 'INSERT' THEN
		UPDATE usage_total t SET charged_nano_usd = t.charged_nano_usd - o.charged
			FROM (SELECT h.account_id, sum(h.charged_nano_usd) AS charged FROM old_hours h GROUP BY 1) o WHERE t.account_id = o.account_id;
	END IF;
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER usage_total_insert AFTER INSERT ON usage_hour REFERENCING NEW TABLE AS new_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_update AFTER UPDATE ON usage_hour REFERENCING NEW TABLE AS new_hours OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
CREATE TRIGGER usage_total_delete AFTER DELETE ON usage_hour REFERENCING OLD TABLE AS old_hours
	FOR EACH STATEMENT EXECUTE FUNCTION usage_total_keep();
--> statement-breakpoint
-- Triggers, so that whichever version folds usage or books credit notes the account for its alerts. They never wait: an
-- existing row is held until this transaction ends, so that its reader sees what this transaction wrote; a row that is
-- being deleted counts for nothing, and another one is written.
CREATE FUNCTION alert_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO alert_touched (account_id)
		SELECT DISTINCT n.account_id FROM new_rows n
		WHERE (EXISTS (SELECT 1 FROM batch_notice_setting s WHERE s.account_id = n.account_id AND s.events <> '[]'::jsonb)
				OR EXISTS (SELECT 1 FROM credit_alert c WHERE c.account_id = n.account_id))
			AND NOT EXISTS (SELECT 1 FROM alert_touched t WHERE t.account_id = n.account_id FOR KEY SHARE SKIP LOCKED);
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER alert_touch_spent AFTER UPDATE ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
CREATE TRIGGER alert_touch_first AFTER INSERT ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
CREATE TRIGGER alert_touch_booked AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION alert_touch();
--> statement-breakpoint
-- The same for automatic top-ups. A row for each change, so that no writer waits for another one's row.
CREATE FUNCTION auto_top_up_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO auto_top_up_touched (account_id)
		SELECT DISTINCT n.account_id FROM new_rows n JOIN auto_top_up s ON s.account_id = n.account_id AND s.state = 'on';
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_spent AFTER UPDATE ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_first AFTER INSERT ON usage_total REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
CREATE TRIGGER auto_top_up_touch_booked AFTER INSERT ON ledger_entry REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION auto_top_up_touch();
--> statement-breakpoint
-- A payment that waited for its owner is looked after as soon as its top-up is decided.
CREATE FUNCTION auto_top_up_wake() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE auto_top_up_attempt SET look_at = now() WHERE top_up_id = new.id AND state = 'needs_authentication';
	RETURN null;
END $$;
--> statement-breakpoint
CREATE TRIGGER auto_top_up_wake AFTER UPDATE OF state ON top_up
	FOR EACH ROW WHEN (new.method = 'card' AND new.state <> 'pending' AND old.state = 'pending') EXECUTE FUNCTION auto_top_up_wake();
