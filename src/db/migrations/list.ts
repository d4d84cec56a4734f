import credit from "./0000_credit.sql" with { type: "text" };
import console from "./0001_console.sql" with { type: "text" };
import fillfactor from "./0002_fillfactor.sql" with { type: "text" };
import refusedRequest from "./0003_refused_request.sql" with { type: "text" };
import statusDay from "./0004_status_day.sql" with { type: "text" };
import gatewayReport from "./0005_gateway_report.sql" with { type: "text" };
import people from "./0006_people.sql" with { type: "text" };
import storedFile from "./0007_stored_file.sql" with { type: "text" };
import paymentFindings from "./0008_payment_findings.sql" with { type: "text" };
import batch from "./0009_batch.sql" with { type: "text" };
import keyShare from "./0010_key_share.sql" with { type: "text" };
import creditAdjustment from "./0011_credit_adjustment.sql" with { type: "text" };
import liveness from "./0012_liveness.sql" with { type: "text" };
import idleLeases from "./0013_idle_leases.sql" with { type: "text" };
import idempotency from "./0014_idempotency.sql" with { type: "text" };
import usageBatch from "./0015_usage_batch.sql" with { type: "text" };
import nettedNotes from "./0016_netted_notes.sql" with { type: "text" };
import batchNotice from "./0017_batch_notice.sql" with { type: "text" };
import sealedDays from "./0018_sealed_days.sql" with { type: "text" };
import removal from "./0019_removal.sql" with { type: "text" };
import usageTotal from "./0020_usage_total.sql" with { type: "text" };
import managementKey from "./0021_management_key.sql" with { type: "text" };
import terms from "./0022_terms.sql" with { type: "text" };
import roles from "./0023_roles.sql" with { type: "text" };
import statement from "./0024_statement.sql" with { type: "text" };
import projectsAndPeriods from "./0025_projects_and_periods.sql" with { type: "text" };
import readOnlyKey from "./0026_read_only_key.sql" with { type: "text" };
import company from "./0027_company.sql" with { type: "text" };
import usageModel from "./0028_usage_model.sql" with { type: "text" };
import passkey from "./0029_passkey.sql" with { type: "text" };
import modelSpeed from "./0030_model_speed.sql" with { type: "text" };
import formerLocks from "./0031_former_locks.sql" with { type: "text" };
import alerts from "./0032_alerts.sql" with { type: "text" };
import autoTopUp from "./0033_auto_top_up.sql" with { type: "text" };
import language from "./0034_language.sql" with { type: "text" };
import noticeLanes from "./0035_notice_lanes.sql" with { type: "text" };
import unreadIndex from "./0036_unread_index.sql" with { type: "text" };
import usageProject from "./0037_usage_project.sql" with { type: "text" };
import usageNewest from "./0038_usage_newest.sql" with { type: "text" };
import paymentsOwed from "./0039_payments_owed.sql" with { type: "text" };
import reservationProject from "./0040_reservation_project.sql" with { type: "text" };
import autoTopUpMonth from "./0041_auto_top_up_month.sql" with { type: "text" };

export interface Migration {
	readonly name: string;
	readonly sql: string;
	/** The version before this one cannot work on what it leaves: all instances are stopped for it. */
	readonly breaking?: true;
}

/** All migrations in order, embedded so that the binary carries them. A test compares the list with the folder. */
export const migrations: readonly Migration[] = [
	{ name: "0000_credit", sql: credit },
	{ name: "0001_console", sql: console },
	{ name: "0002_fillfactor", sql: fillfactor },
	{ name: "0003_refused_request", sql: refusedRequest },
	{ name: "0004_status_day", sql: statusDay },
	{ name: "0005_gateway_report", sql: gatewayReport },
	{ name: "0006_people", sql: people },
	{ name: "0007_stored_file", sql: storedFile },
	{ name: "0008_payment_findings", sql: paymentFindings },
	{ name: "0009_batch", sql: batch },
	{ name: "0010_key_share", sql: keyShare },
	{ name: "0011_credit_adjustment", sql: creditAdjustment },
	{ name: "0012_liveness", sql: liveness },
	{ name: "0013_idle_leases", sql: idleLeases },
	{ name: "0014_idempotency", sql: idempotency },
	{ name: "0015_usage_batch", sql: usageBatch },
	{ name: "0016_netted_notes", sql: nettedNotes },
	{ name: "0017_batch_notice", sql: batchNotice },
	{ name: "0018_sealed_days", sql: sealedDays },
	{ name: "0019_removal", sql: removal },
	{ name: "0020_usage_total", sql: usageTotal },
	{ name: "0021_management_key", sql: managementKey },
	{ name: "0022_terms", sql: terms },
	{ name: "0023_roles", sql: roles },
	{ name: "0024_statement", sql: statement },
	{ name: "0025_projects_and_periods", sql: projectsAndPeriods },
	{ name: "0026_read_only_key", sql: readOnlyKey },
	{ name: "0027_company", sql: company },
	{ name: "0028_usage_model", sql: usageModel },
	{ name: "0029_passkey", sql: passkey },
	{ name: "0030_model_speed", sql: modelSpeed },
	{ name: "0031_former_locks", sql: formerLocks },
	{ name: "0032_alerts", sql: alerts },
	{ name: "0033_auto_top_up", sql: autoTopUp },
	{ name: "0034_language", sql: language },
	{ name: "0035_notice_lanes", sql: noticeLanes },
	{ name: "0036_unread_index", sql: unreadIndex },
	{ name: "0037_usage_project", sql: usageProject },
	{ name: "0038_usage_newest", sql: usageNewest },
	{ name: "0039_payments_owed", sql: paymentsOwed },
	{ name: "0040_reservation_project", sql: reservationProject },
	{ name: "0041_auto_top_up_month", sql: autoTopUpMonth },
];
