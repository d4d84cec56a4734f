import { Skeleton } from "@mantine/core";
import { api } from "../api.ts";
import { formatClock, formatCount, formatDuration } from "../format.ts";
import { endpointName } from "../labels.ts";
import { CostLines } from "../parts/cost-lines.tsx";
import { Facts, Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { RequestEnding } from "../parts/request-table.tsx";
import { Amount, Id, Moment } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { showUsdExact } from "../shown-money.ts";
import { rich, t } from "../texts.tsx";
import type { RequestDetail } from "../views.ts";
import { RefusedRequest } from "./request-refused.tsx";

const STEPS: Readonly<Record<string, string>> = {
	admitted: t("Admitted"),
	first_token: t("First token"),
	ended: t("Ended"),
	settled: t("Settled"),
};

const HOW_ENDED: Readonly<Record<string, string>> = {
	finished: t("The model finished its answer"),
	upstream_failed: t("The model's server failed"),
	upstream_died: t("The model's server broke off in the middle"),
	upstream_silent: t("The model's server fell silent"),
	client_left: t("The client left"),
	shutdown: t("The service was being restarted"),
	crashed: t("The instance of the service died"),
};

const BASES: Readonly<Record<string, string>> = {
	exact: t("Exact: as counted by the model's server"),
	estimated: t("Estimated: the client left before the server had counted"),
	recovered: t("Recovered: settled after an instance of the service died"),
};

const ENDINGS: Readonly<Record<number, string>> = {
	429: t("The servers of the model were busy."),
	499: t("The client closed the connection."),
	502: t("The model's server failed."),
	503: t("No server for the model was connected."),
	504: t("The model's server did not answer in time."),
};

export default function RequestPage({ id }: { id: string }) {
	const account = useAccount();
	const request = useResource(`request ${account.id} ${id}`, () => api.request(account.id, id));
	const found = request.data;
	if (request.error?.status === 404) {
		return (
			<Page title={t("Request")}>
				<Empty
					title={t("There is no such request in this account.")}
					action={<Link to="/requests">{t("All requests")}</Link>}
				>
					{t(
						"The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends; one that was refused is kept for 30 days.",
					)}
				</Empty>
			</Page>
		);
	}
	return (
		<Page title={t("Request")} lead={<Id value={id} label={t("Copy the request's id")} />}>
			{request.error && <Problem error={request.error} retry={() => void request.reload()} />}
			{!found && !request.error && <Skeleton height={320} />}
			{found && (found.statusClass === "refused" ? <RefusedRequest row={found} /> : <Detail row={found} />)}
		</Page>
	);
}

function Detail({ row }: { row: RequestDetail }) {
	const endingText = ENDINGS[row.status];
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
			{endingText && <Notice kind="warn">{endingText}</Notice>}
			{row.writtenOffNanoUsd > 0 && (
				<Notice>
					{rich("It cost {writtenOff} more than was held and the credit did not cover that. It was not charged.", {
						writtenOff: <Amount nanoUsd={row.writtenOffNanoUsd} />,
					})}
				</Notice>
			)}
			<div className="grid-even">
				<Panel title={t("Request")}>
					<Facts
						items={[
							[
								t("Model"),
								<Link key="model" to={`/models/${row.model}`}>
									{row.model}
								</Link>,
							],
							[t("Key"), <Link key="key" to={`/keys/${row.keyId}`}>{`${row.keyName} …${row.keyLastFour}`}</Link>],
							[t("Endpoint"), `${endpointName(row.endpoint)}${row.streamed ? t(", streamed") : ""}`],
							[t("Ending"), <RequestEnding key="ending" row={row} />],
							[t("How it ended"), HOW_ENDED[row.ending] ?? row.ending.replaceAll("_", " ")],
							[t("Basis"), BASES[row.basis] ?? row.basis],
							[
								t("Replica"),
								row.replica ?? (
									<span key="replica" className="dim">
										{t("none was reached")}
									</span>
								),
							],
							[
								t("Answer's id"),
								row.answerId === null ? (
									<span key="answer" className="dim">
										–
									</span>
								) : (
									<Id key="answer" value={row.answerId} />
								),
							],
							...(row.batchId === null
								? []
								: [
										[
											t("Batch"),
											<Link key="batch" to={`/batches/${row.batchId}`}>
												{row.batchId}
											</Link>,
										] as const,
									]),
							[t("Rate card"), <code key="card">{row.rateCard}</code>],
						]}
					/>
				</Panel>
				<Panel title={t("Timeline")}>
					<ol className="timeline">
						{row.timeline.map((step) => (
							<li key={step.name}>
								<span>{STEPS[step.name] ?? step.name}</span>
								<span className="num">+{formatDuration(step.afterMs)}</span>
								<span className="dim num">
									{step.name === "admitted" ? <Moment atMs={step.atMs} form="log" /> : formatClock(step.atMs)}
								</span>
							</li>
						))}
					</ol>
				</Panel>
			</div>
			<Panel title={t("Cost, line by line")} flush>
				<CostLines lines={row.lines} />
				{row.linesTotalNanoUsd !== null && (
					<div className="sum">
						<span>{t("Sum, rounded up once to a billionth of a dollar")}</span>
						<strong className="num">{showUsdExact(row.linesTotalNanoUsd)}</strong>
					</div>
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
