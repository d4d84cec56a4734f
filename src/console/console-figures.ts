import { createHistogram } from "../base/histogram.ts";
import { NANO_PER_USD, type NanoUsd } from "../money/nano-usd.ts";
import type { MetricHistogram, MetricReading } from "../ops/metrics.ts";

export type ConsoleFigures = ReturnType<typeof createConsoleFigures>;

/** `limited`: the mailbox reached its hourly or daily limit. `dropped`: too many mails were pending. */
const MAIL_OUTCOMES = ["sent", "failed", "limited", "dropped"] as const;
const CHANNELS = ["mail", "webhook"] as const;
const NOTICE_OUTCOMES = ["sent", "waiting", "failed"] as const;

export function createConsoleFigures() {
	const mails = { sent: 0, failed: 0, limited: 0, dropped: 0 };
	const notices = { mail: { sent: 0, waiting: 0, failed: 0 }, webhook: { sent: 0, waiting: 0, failed: 0 } };
	const revocations = createHistogram();
	let late = 0;
	let lostNanoUsd = 0;
	return {
		mail(outcome: (typeof MAIL_OUTCOMES)[number]): void {
			mails[outcome] += 1;
		},
		notice(channel: (typeof CHANNELS)[number], outcome: (typeof NOTICE_OUTCOMES)[number]): void {
			notices[channel][outcome] += 1;
		},
		lostWork(amount: NanoUsd): void {
			lostNanoUsd += amount;
		},
		/** Records the time from a revocation in the console until no instance accepts the key. */
		revoked(ms: number, effective: boolean): void {
			revocations.observe(ms);
			if (!effective) late += 1;
		},
		readings: (): MetricReading[] => [
			{
				name: "tollgate_mails_total",
				help: "Mails by outcome.",
				labels: ["outcome"],
				read: () => MAIL_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: mails[outcome] })),
			},
			{
				name: "tollgate_batch_notices_total",
				help: "Delivery attempts of notices about batches and accounts, by channel and outcome.",
				labels: ["channel", "outcome"],
				read: () =>
					CHANNELS.flatMap((channel) =>
						NOTICE_OUTCOMES.map((outcome) => ({ labels: { channel, outcome }, value: notices[channel][outcome] })),
					),
			},
			{
				name: "tollgate_batch_lost_work_usd_total",
				help: "Charges of interrupted batch requests that were credited to their accounts.",
				read: () => lostNanoUsd / NANO_PER_USD,
			},
			{
				name: "tollgate_revocations_late_total",
				help: "Revocations that not all instances had applied when the page's wait ended.",
				read: () => late,
			},
		],
		histograms: (): MetricHistogram[] => [
			{
				name: "tollgate_revocation_seconds",
				help: "Time from a revocation in the console until every instance applies it.",
				unit: "ms",
				read: () => revocations,
			},
		],
	};
}
