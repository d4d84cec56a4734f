import { Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { may } from "../../console/views.ts";
import { api } from "../api.ts";
import { Form, PanelEnd } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Notice, Reading } from "../parts/problem.tsx";
import { resources, useAction, useResource } from "../resource.ts";
import { t } from "../texts.tsx";
import type { AccountView, BillingDetails } from "../views.ts";

/** Name and address on receipts and statements. */
export function BillingPanel({ account }: { account: AccountView }) {
	const key = `billing-details ${account.id}`;
	const details = useResource(key, () => api.billingDetails(account.id));
	return (
		<Panel title={t("Receipts and statements")}>
			<Reading of={details} />
			{details.data && (
				<BillingForm account={account} details={details.data} onSaved={(stored) => resources.set(key, () => stored)} />
			)}
		</Panel>
	);
}

function BillingForm(props: {
	account: AccountView;
	details: BillingDetails;
	onSaved: (stored: BillingDetails) => void;
}) {
	const { account, details, onSaved } = props;
	const mayChange = may(account.role, "billing.change");
	// Only the edited fields. All three are sent; the others keep the values that were loaded.
	const [typed, setTyped] = useState<Partial<BillingDetails>>({});
	const given = { ...details, ...typed };
	const [saved, setSaved] = useState(false);
	const save = useAction(async () => {
		onSaved(await api.setBillingDetails(account.id, given));
		setTyped({});
		setSaved(true);
	});
	const field = (name: keyof BillingDetails) => ({
		value: given[name],
		disabled: !mayChange,
		error: save.error?.param === name ? save.error.message : undefined,
		onChange: (event: { currentTarget: { value: string } }) => {
			setSaved(false);
			setTyped({ ...typed, [name]: event.currentTarget.value });
		},
	});
	const isField = save.error?.param === "company" || save.error?.param === "address" || save.error?.param === "vatId";
	return (
		<Form
			onSubmit={save.run}
			error={isField ? undefined : save.error}
			end={
				<>
					{saved && (
						<Notice kind="ok">{t("Saved. Receipts and statements carry it from now on, earlier ones too.")}</Notice>
					)}
					{mayChange ? (
						<PanelEnd label={t("Save")} busy={save.busy} />
					) : (
						<p className="small dim">{t("Owners, admins and billing decide.")}</p>
					)}
				</>
			}
		>
			<TextInput label={t("Company")} autoComplete="organization" maxLength={200} {...field("company")} />
			<Textarea
				label={t("Address")}
				description={t("Up to 8 lines")}
				autoComplete="street-address"
				autosize
				minRows={3}
				maxRows={8}
				{...field("address")}
			/>
			<TextInput label={t("VAT ID")} maxLength={40} {...field("vatId")} />
		</Form>
	);
}
