import { Group, SimpleGrid } from "@mantine/core";
import { api } from "../api.ts";
import { formatClock, formatCount, formatDuration } from "../format.ts";
import { endpointName } from "../labels.ts";
import { CostLines } from "../parts/cost-lines.tsx";
import { Facts, Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Notice, Reading } from "../parts/problem.tsx";
import { RequestEnding } from "../parts/request-table.tsx";
import { Amount, Id, Moment } from "../parts/text.tsx";
import { basisText, failureReason, howEnded } from "../request-words.ts";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useSession } from "../session.tsx";
import { showUsdExact } from "../shown-money.ts";
import { plural, rich, t } from "../texts.tsx";
import type { RequestDetail } from "../views.ts";
import { RefusedRequest } from "./request-refused.tsx";

const STEPS: Readonly<Record<string, string>> = {
	admitted: t("Admitted"),
	first_token: t("First token"),
	ended: t("Ended"),
	settled: t("Settled"),
};

export default function RequestPage({ id }: { id: string }) {
	const account = useAccount();
	const { config } = useSession();
	const request = useResource(`request ${account.id} ${id}`, () => api.request(account.id, id));
	const found = request.data;
	if (request.error?.status === 404) {
		return (
			<Page title={t("Request")}>
				<Empty
					title={t("There is no such request in this account.")}
					action={<Link to="/requests">{t("All requests")}</Link>}
				>
					{config.refusalsKeptDays === 0
						? t(
								"The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends, or when it is refused.",
							)
						: plural(
								config.refusalsKeptDays,
								{
									one: "The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends; one that was refused is kept for a day.",
									other:
										"The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends; one that was refused is kept for {count} days.",
								},
								{ count: config.refusalsKeptDays },
							)}
				</Empty>
			</Page>
		);
	}
	return (
		<Page title={t("Request")} lead={<Id value={id} label={t("Copy the request's id")} />}>
			<Reading of={request} height={320} />
			{found && (found.statusClass === "refused" ? <RefusedRequest row={found} /> : <Detail row={found} />)}
		</Page>
	);
}

function Detail({ row }: { row: RequestDetail }) {
	const reason = failureReason(row);
	return (
		<>
			<Panel>
				<div className="stats">
					<Stat label={t("Cost")} value={<Amount nanoUsd={row.costNanoUsd} />}>
						{rich("held {reserved}", { reserved: <Amount nanoUsd={row.reservedNanoUsd} /> })}
					</Stat>
					<Stat label={t("Tokens")} value={`${formatCount(row.promptTokens)} + ${formatCount(row.completionTokens)}`}>
						{t("prompt + completion")}
					</Stat>
					<Stat label={t("First token")} value={formatDuration(row.firstTokenMs)} />
					<Stat label={t("Duration")} value={formatDuration(row.durationMs)} />
					<Stat label={t("Speed")} value={speedText(row)} />
				</div>
			</Panel>
			{reason && <Notice kind="warn">{reason}</Notice>}
			{row.writtenOffNanoUsd > 0 && (
				<Notice>
					{rich("The credit did not cover {writtenOff} of what it cost. That was not charged.", {
						writtenOff: <Amount nanoUsd={row.writtenOffNanoUsd} />,
					})}
				</Notice>
			)}
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				<Panel title={t("Request")}>
					<Facts
						of={{
							[t("Model")]: <Link to={`/models/${row.model}`}>{row.model}</Link>,
							[t("Key")]: <Link to={`/keys/${row.keyId}`}>{`${row.keyName} …${row.keyLastFour}`}</Link>,
							[t("Endpoint")]: `${endpointName(row.endpoint)}${row.streamed ? t(", streamed") : ""}`,
							[t("Ending")]: <RequestEnding row={row} />,
							[t("How it ended")]: howEnded(row),
							[t("Basis")]: basisText(row),
							[t("Replica")]: row.replica ?? <span className="dim">{t("none was reached")}</span>,
							[t("Answer's id")]: row.answerId && <Id value={row.answerId} />,
							[t("Batch")]: row.batchId && <Link to={`/batches/${row.batchId}`}>{row.batchId}</Link>,
							[t("Rate card")]: <code>{row.rateCard}</code>,
						}}
					/>
				</Panel>
				<Panel title={t("Timeline")}>
					<Facts
						of={Object.fromEntries(
							row.timeline.map(({ name, atMs, afterMs }) => [
								STEPS[name] ?? name,
								<Group key={name} gap="md" className="num">
									<span>+{formatDuration(afterMs)}</span>
									<span className="dim">
										{name === "admitted" ? <Moment atMs={atMs} form="log" /> : formatClock(atMs)}
									</span>
								</Group>,
							]),
						)}
					/>
				</Panel>
			</SimpleGrid>
			<Panel title={t("Cost, line by line")} flush>
				<CostLines lines={row.lines} />
				{row.linesTotalNanoUsd !== null && (
					<Group className="sum" justify="space-between">
						<span>{t("Sum, rounded up once to a billionth of a dollar")}</span>
						<strong className="num">{showUsdExact(row.linesTotalNanoUsd)}</strong>
					</Group>
				)}
			</Panel>
		</>
	);
}

function speedText(row: RequestDetail): string {
	const generatingMs = row.firstTokenMs === null ? row.durationMs : row.durationMs - row.firstTokenMs;
	if (row.completionTokens < 2 || generatingMs <= 0) return "–";
	return t("{count} tokens/s", { count: formatCount(Math.round((row.completionTokens / generatingMs) * 1000)) });
}
