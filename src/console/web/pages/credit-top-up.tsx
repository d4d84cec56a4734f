import { Button, NumberInput, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { formatUsd } from "../format.ts";
import { Facts, Panel } from "../parts/page.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { Amount, Id } from "../parts/text.tsx";
import { useAction } from "../resource.ts";
import { useAccount, useSession } from "../session.tsx";
import type { TopUpView } from "../views.ts";

const PRESETS_USD = ["100", "250", "500", "1000"];

export function TopUpPanel({ onMade }: { onMade: () => void }) {
	const { config } = useSession();
	const account = useAccount();
	const [usd, setUsd] = useState("100");
	const [method, setMethod] = useState<"card" | "transfer">(config.cardPayments ? "card" : "transfer");
	const [made, setMade] = useState<TopUpView>();
	const topUp = useAction(async () => {
		if (method === "card") {
			const { url } = await api.topUpByCard(account.id, usd);
			location.assign(url);
			return;
		}
		setMade((await api.topUpByTransfer(account.id, usd)).topUp);
		onMade();
	});

	if (made) {
		return (
			<Panel title="Top up">
				<div className="stack">
					<Notice kind="ok">Recorded as pending. Now make the transfer:</Notice>
					<Facts
						items={[
							["Amount", <Amount key="amount" nanoUsd={made.amountNanoUsd} />],
							["Reference", <Id key="reference" value={made.reference} label="Copy the reference" />],
						]}
					/>
					<p className="dim">
						Give exactly this reference, so that the payment can be found. An operator checks that it has arrived and
						confirms it with the bank's transaction reference; the credit then appears on this page by itself, with a
						receipt.
					</p>
					<div className="form-end">
						<Button variant="default" onClick={() => setMade(undefined)}>
							Make another
						</Button>
					</div>
				</div>
			</Panel>
		);
	}
	return (
		<Panel title="Top up">
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void topUp.run();
				}}
			>
				{/* biome-ignore lint/a11y/useSemanticElements: these set the field below, which has its own label */}
				<div className="presets" role="group" aria-label="Common amounts">
					{PRESETS_USD.map((preset) => (
						<Button
							key={preset}
							size="xs"
							variant={usd === preset ? "filled" : "default"}
							aria-pressed={usd === preset}
							onClick={() => setUsd(preset)}
						>
							${Number(preset).toLocaleString("en-US")}
						</Button>
					))}
				</div>
				<NumberInput
					label="Amount in USD"
					description={`From ${formatUsd(config.topUpMinNanoUsd)} to ${formatUsd(config.topUpMaxNanoUsd)} at a time`}
					required
					withAsterisk={false}
					hideControls
					decimalScale={2}
					thousandSeparator=","
					allowNegative={false}
					value={usd}
					error={topUp.error?.param === "usd" ? topUp.error.message : undefined}
					onValueChange={(value) => setUsd(value.value)}
				/>
				{config.cardPayments && (
					<SegmentedControl
						aria-label="Method"
						data={[
							{ value: "card", label: "Card" },
							{ value: "transfer", label: "Bank transfer" },
						]}
						value={method}
						onChange={(value) => setMethod(value === "card" ? "card" : "transfer")}
					/>
				)}
				<p className="small dim">
					{method === "card"
						? "You pay on Stripe's page. The credit appears when Stripe has confirmed the payment."
						: "You get a reference for the transfer. The credit appears when an operator has seen the payment."}
				</p>
				{topUp.error && topUp.error.param !== "usd" && <Problem error={topUp.error} />}
				<div className="form-end">
					<Button type="submit" loading={topUp.busy} disabled={usd === ""}>
						{method === "card" ? "Pay by card" : "Get the reference"}
					</Button>
				</div>
			</form>
		</Panel>
	);
}
