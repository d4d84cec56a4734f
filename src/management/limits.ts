import { isoOrNull } from "../base/iso-date.ts";
import { amountOf } from "../console/page-query.ts";
import type { LimitedRecord } from "../keys/limited-record.ts";
import type { ProjectSettings } from "../keys/project-admin.ts";
import { formatUsd } from "../money/nano-usd.ts";
import type { RequestOf } from "./management-call.ts";

/** What is set of a key and of a project alike. Absent stays absent, null stays null. */
export function limitsOf(given: Omit<RequestOf<"ManagementProjectUpdate">, "name">): ProjectSettings {
	const { cap_usd: cap, cap_period: capPeriod, models, requests_per_minute: rate, concurrency } = given;
	return {
		...(cap === undefined ? {} : { capNanoUsd: cap === null ? null : amountOf(cap, "cap_usd") }),
		...(capPeriod === undefined ? {} : { capPeriod }),
		...(models === undefined ? {} : { models }),
		...(rate === undefined ? {} : { requestsPerMinute: rate }),
		...(concurrency === undefined ? {} : { concurrencyMax: concurrency }),
	};
}

/** The same as it is, with what was spent. */
export function limitsView(of: LimitedRecord) {
	return {
		cap_usd: of.capNanoUsd === null ? null : formatUsd(of.capNanoUsd),
		cap_period: of.capPeriod,
		cap_spent_usd: formatUsd(of.capSpentNanoUsd),
		cap_renews_at: isoOrNull(of.capRenewsAtMs),
		spent_usd: formatUsd(of.spentNanoUsd),
		models: of.models.length === 0 ? null : of.models,
		requests_per_minute: of.requestsPerMinute,
		concurrency: of.concurrencyMax,
	};
}
