import type { api } from "./api.ts";

/**
 * Response types of the console's API, derived from the server's code. Units: `NanoUsd` nano-dollars, rates
 * pico-dollars per unit, `AtMs` Unix milliseconds, `Ms` milliseconds.
 */

export type Answer<F extends (...args: never[]) => Promise<unknown>> = Awaited<ReturnType<F>>;
export type Item<P extends { readonly items: readonly unknown[] }> = P["items"][number];

export type PublicConfig = Answer<typeof api.config>;
export type ModelView = Item<Answer<typeof api.models>>;
export type ModelDetail = Answer<typeof api.model>;
export type OutboxMail = Item<Answer<typeof api.outbox>>;

export type Me = Answer<typeof api.me>;
export type AccountView = Me["accounts"][number];
export type MemberRow = Item<Answer<typeof api.members>>;
export type InvitationRow = Answer<typeof api.members>["invitations"][number];
export type MemberKeyView = Item<Answer<typeof api.memberKeys>>;
export type CompanyView = Answer<typeof api.companySignIn>;
export type SessionView = Item<Answer<typeof api.sessions>>;

export type Overview = Answer<typeof api.overview>;
/** The fields of the overview that the live feed sends. */
export type OverviewLive = Omit<Overview, "chart" | "topModels">;
export type Checklist = Overview["checklist"];
export type Balance = Overview["balance"];
export type UsageSeries = Answer<typeof api.usage>;
export type UsageGroup = UsageSeries["groups"][number];
export type LogRow = Item<Answer<typeof api.requests>>;
/** A request in the log that was admitted and has ended. */
export type RequestRow = Exclude<LogRow, { statusClass: "refused" }>;
type LogDetail = Answer<typeof api.request>;
export type RefusedDetail = Extract<LogDetail, { statusClass: "refused" }>;
export type RequestDetail = Exclude<LogDetail, RefusedDetail>;

export type KeyView = Answer<typeof api.key>;
export type ProjectView = Answer<typeof api.project>;
export type ProjectMemberView = Item<Answer<typeof api.projectMembers>>;
/** State of a change: whether every live instance has applied it. */
export type Fence = Answer<typeof api.revokeKey>["fence"];

export type BatchView = Answer<typeof api.batch>;
export type Notices = Answer<typeof api.notices>;
export type NoticeView = Item<Notices>;

export type CreditView = Answer<typeof api.credit>;
export type AutoTopUpView = Answer<typeof api.autoTopUp>;
export type AlertView = CreditView["alert"];
export type RunningRequest = Item<Answer<typeof api.running>>;
export type TopUpView = Item<Answer<typeof api.topUps>>;
export type LedgerEntry = Item<Answer<typeof api.ledger>>;

export type StatementMonth = Item<Answer<typeof api.statements>>;
export type BillingDetails = Answer<typeof api.billingDetails>;
