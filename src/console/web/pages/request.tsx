import { Skeleton } from "@mantine/core";
import { showLineCost, showRatePerMillion, showRatePerUnit, showUsdExact } from "../../../money/shown-usd.ts";
import { api } from "../api.ts";
import { formatClock, formatCount, formatDuration } from "../format.ts";
import { Facts, Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Notice, Problem } from "../parts/problem.tsx";
import { RequestEnding } from "../parts/request-table.tsx";
import { DataTable } from "../parts/table.tsx";
import { Amount, Id, Moment } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount } from "../session.tsx";
import type { RequestDetail } from "../views.ts";
import { RefusedRequest } from "./request-refused.tsx";

const STEPS: Readonly<Record<string, string>> = {
	admitted: "Admitted",
	first_token: "First token",
	ended: "Ended",
	settled: "Settled",
};

const ENDPOINTS: Readonly<Record<string, string>> = {
	chat: "Chat completions",
	completions: "Completions",
	embeddings: "Embeddings",
	transcription: "Transcriptions",
	image: "Images",
	rerank: "Rerank",
};

const HOW_ENDED: Readonly<Record<string, string>> = {
	finished: "The model finished its answer",
	upstream_failed: "The model's server failed",
	upstream_died: "The model's server broke off in the middle",
	upstream_silent: "The model's server fell silent",
	client_left: "The client left",
	shutdown: "The service was being restarted",
	crashed: "The instance of the service died",
};

const BASES: Readonly<Record<string, string>> = {
	exact: "Exact: as counted by the model's server",
	estimated: "Estimated: the client left before the server had counted",
	recovered: "Recovered: settled after an instance of the service died",
};

const ENDINGS: Readonly<Record<number, string>> = {
	429: "The servers of the model were busy.",
	499: "The client closed the connection.",
	502: "The model's server failed.",
	503: "No server for the model was connected.",
	504: "The model's server did not answer in time.",
};

export default function RequestPage({ id }: { id: string }) {
	const account = useAccount();
	const request = useResource(`request ${account.id} ${id}`, () => api.request(account.id, id));
	const found = request.data;
	if (request.error?.status === 404) {
		return (
			<Page title="Request">
				<Empty title="There is no such request in this account." action={<Link to="/requests">All requests</Link>}>
					The id is the value of the x-request-id header, or the answer's own id. A request appears when it ends; one
					that was refused is kept for 30 days.
				</Empty>
			</Page>
		);
	}
	return (
		<Page title="Request" lead={<Id value={id} label="Copy the request's id" />}>
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
					<Stat label="Cost" value={<Amount nanoUsd={row.costNanoUsd} />}>
						held <Amount nanoUsd={row.reservedNanoUsd} />
					</Stat>
					<Stat label="Tokens" value={`${formatCount(row.promptTokens)} + ${formatCount(row.completionTokens)}`}>
						prompt + completion
					</Stat>
					<Stat label="First token" value={formatDuration(row.firstTokenMs)} />
					<Stat label="Duration" value={formatDuration(row.durationMs)} />
					<Stat label="Speed" value={speedText(row)} />
				</div>
			</Panel>
			{endingText && <Notice kind="warn">{endingText}</Notice>}
			{row.writtenOffNanoUsd > 0 && (
				<Notice>
					It cost <Amount nanoUsd={row.writtenOffNanoUsd} /> more than was held and the credit did not cover that. It
					was not charged.
				</Notice>
			)}
			<div className="grid-even">
				<Panel title="Request">
					<Facts
						items={[
							[
								"Model",
								<Link key="model" to={`/models/${row.model}`}>
									{row.model}
								</Link>,
							],
							["Key", <Link key="key" to={`/keys/${row.keyId}`}>{`${row.keyName} …${row.keyLastFour}`}</Link>],
							["Endpoint", `${ENDPOINTS[row.endpoint] ?? row.endpoint}${row.streamed ? ", streamed" : ""}`],
							["Ending", <RequestEnding key="ending" row={row} />],
							["How it ended", HOW_ENDED[row.ending] ?? row.ending.replaceAll("_", " ")],
							["Basis", BASES[row.basis] ?? row.basis],
							[
								"Replica",
								row.replica ?? (
									<span key="replica" className="dim">
										none was reached
									</span>
								),
							],
							[
								"Answer's id",
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
											"Batch",
											<Link key="batch" to={`/batches/${row.batchId}`}>
												{row.batchId}
											</Link>,
										] as const,
									]),
							["Rate card", <code key="card">{row.rateCard}</code>],
						]}
					/>
				</Panel>
				<Panel title="Timeline">
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
			<Panel title="Cost, line by line" flush>
				<DataTable
					label="Cost, line by line"
					rows={row.lines}
					rowKey={(line) => line.label}
					empty={<Empty title="Nothing was charged." />}
					columns={[
						{ label: "What", lead: true, render: (line) => line.label },
						{ label: "Units", right: true, render: (line) => <span className="num">{formatCount(line.units)}</span> },
						{
							label: "Rate",
							right: true,
							render: (line) => (
								<span className="num">
									{line.unit === "token" ? showRatePerMillion(line.rate) : showRatePerUnit(line.rate)}{" "}
									<span className="dim">per {line.unit === "token" ? "million tokens" : line.unit}</span>
								</span>
							),
						},
						{
							label: "Amount",
							right: true,
							render: (line) => <span className="num">{showLineCost(line)}</span>,
						},
					]}
				/>
				{row.linesTotalNanoUsd !== null && (
					<div className="sum">
						<span>Sum, rounded up once to a billionth of a dollar</span>
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
	return `${formatCount(Math.round((row.completionTokens / generatingMs) * 1000))} tokens/s`;
}
