import { Group, Select, SimpleGrid, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import type { Language } from "../../base/language.ts";
import { can } from "../../console/views.ts";
import { type AccountView, api, type BillingDetails } from "../api.ts";
import { roleName } from "../labels.ts";
import { TextField, useField } from "../parts/fields.tsx";
import { fieldError, PanelForm } from "../parts/form.tsx";
import { ErrorMessage, LoadState, Notice, Page, Panel } from "../parts/page.tsx";
import { chooseLanguage, LanguageSwitch } from "../parts/switches.tsx";
import { resourceCache, useAction, useResource } from "../resource.ts";
import { authApi, useSession } from "../session.tsx";
import { t } from "../texts.tsx";
import { CompanyPanel } from "./settings-company.tsx";
import { MembersPanel } from "./settings-members.tsx";
import { NoticesPanel } from "./settings-notices.tsx";
import { PasskeysPanel, PasswordPanel, SessionsPanel, TwoFactorPanel } from "./settings-security.tsx";

export default function SettingsPage() {
	const { me } = useSession();
	const account = me?.account;
	// False in a company session: the company manages name, password and sessions of its people.
	const own = me !== undefined && !me.user.company;
	return (
		<Page title={t("Settings")}>
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				{own ? (
					<ProfilePanel />
				) : (
					<Panel title={t("Language")}>
						<OwnLanguage />
					</Panel>
				)}
				{account && <AccountPanel account={account} />}
			</SimpleGrid>
			{account && (
				<>
					{can(account.role, "credit.see") && <BillingPanel key={account.id} account={account} />}
					<MembersPanel account={account} />
					{can(account.role, "sign_in.manage") && <CompanyPanel account={account} />}
					<NoticesPanel account={account} />
				</>
			)}
			{own && (
				<>
					<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
						<PasswordPanel />
						<TwoFactorPanel />
					</SimpleGrid>
					<PasskeysPanel />
					<SessionsPanel />
				</>
			)}
		</Page>
	);
}

/** The person's language for pages and mails, on every device. */
function OwnLanguage() {
	const save = useAction(async (wanted: Language) => {
		await api.setLanguage(wanted);
		chooseLanguage(wanted);
	});
	return (
		<>
			{save.error && <ErrorMessage error={save.error} />}
			<LanguageSwitch choose={(wanted) => void save.run(wanted)} />
		</>
	);
}

function ProfilePanel() {
	const { me, refresh } = useSession();
	const { email = "", operator = false, name: before = "" } = me?.user ?? {};
	const [name, setName] = useState(before);
	const save = useAction(() => authApi.updateName(name.trim()), refresh);
	return (
		<Panel title={t("You")}>
			<PanelForm action={save} act={t("Save")} disabled={["", before].includes(name.trim())}>
				<TextField label={t("Name")} maxLength={200} value={name} onChange={setName} />
				<p className="small dim">
					{operator
						? t("Signed in as {email}, operator of the service.", { email })
						: t("Signed in as {email}.", { email })}
				</p>
			</PanelForm>
			<Group mt="sm">
				<span>{t("Language")}</span>
				<OwnLanguage />
			</Group>
		</Panel>
	);
}

function AccountPanel({ account }: { account: AccountView }) {
	const { refresh } = useSession();
	const name = useField(account.name);
	const [timeZone, setTimeZone] = useState(account.timeZone);
	const isNamed = !["", account.name].includes(name.value.trim());
	const isMoved = timeZone !== account.timeZone;
	const save = useAction(
		() => api.changeAccount(account.id, { ...(isNamed && { name: name.value.trim() }), ...(isMoved && { timeZone }) }),
		refresh,
	);
	const disabled = !can(account.role, "account.change");
	return (
		<Panel title={t("Account")}>
			<PanelForm action={save} act={t("Save")} disabled={!isNamed && !isMoved}>
				<TextField label={t("Name of the account")} maxLength={200} disabled={disabled} {...name} />
				<p className="small dim">{t("{id}; your role: {role}.", { id: account.id, role: roleName(account.role) })}</p>
				<Select
					label={t("Time zone")}
					description={t("Daily, weekly and monthly caps reset at midnight in this time zone. Weeks start on Monday.")}
					data={[...new Set(["UTC", account.timeZone, ...Intl.supportedValuesOf("timeZone")])]}
					searchable
					allowDeselect={false}
					limit={100}
					disabled={disabled}
					value={timeZone}
					onChange={(chosen) => setTimeZone(chosen ?? timeZone)}
					nothingFoundMessage={t("No such time zone")}
				/>
			</PanelForm>
		</Panel>
	);
}

function BillingPanel({ account }: { account: AccountView }) {
	const key = `billing-details ${account.id}`;
	const details = useResource(key, () => api.billingDetails(account.id));
	return (
		<Panel title={t("Receipts and statements")}>
			<LoadState of={details} />
			{details.data && (
				<BillingForm
					account={account}
					details={details.data}
					onSaved={(stored) => resourceCache.set(key, () => stored)}
				/>
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
	const mayChange = can(account.role, "billing.change");
	// Only edited fields; unedited ones are sent as they were loaded.
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
		error: fieldError(save, name),
		onChange: (event: { currentTarget: { value: string } }) => {
			setSaved(false);
			setTyped({ ...typed, [name]: event.currentTarget.value });
		},
	});
	return (
		<PanelForm
			action={save}
			act={t("Save")}
			fields={["company", "address", "vatId"]}
			notice={
				saved && (
					<Notice kind="ok">{t("Saved. All receipts and statements now show it, including earlier ones.")}</Notice>
				)
			}
			denied={!mayChange && t("Only owners, admins and billing members can change this.")}
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
		</PanelForm>
	);
}
