import { Group, Select, SimpleGrid } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Language } from "../../base/language.ts";
import { may, PASSWORD_CHARS_MIN } from "../../console/views.ts";
import { api } from "../api.ts";
import { authApi } from "../auth-api.ts";
import { roleName } from "../labels.ts";
import { chooseLanguage } from "../language-choice.ts";
import { NewPasswordField, PasswordField, TextField } from "../parts/fields.tsx";
import { Form, PanelEnd } from "../parts/form.tsx";
import { LanguageSwitch } from "../parts/language-switch.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { Notice, Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { useSession } from "../session.tsx";
import { t } from "../texts.tsx";
import { BillingPanel } from "./settings-billing.tsx";
import { CompanyPanel } from "./settings-company.tsx";
import { MembersPanel } from "./settings-members.tsx";
import { NoticesPanel } from "./settings-notices.tsx";
import { PasskeysPanel } from "./settings-passkeys.tsx";
import { SessionsPanel } from "./settings-sessions.tsx";
import { TwoFactorPanel } from "./settings-two-factor.tsx";

export default function SettingsPage() {
	const { me } = useSession();
	// The company manages name, password and sessions of a user of its sign-in.
	const own = me !== undefined && !me.user.company;
	return (
		<Page title={t("Settings")}>
			<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
				{own ? <ProfilePanel /> : <LanguagePanel />}
				{me?.account && <AccountPanel />}
				{me?.account && <TimeZonePanel />}
			</SimpleGrid>
			{me?.account && may(me.account.role, "credit.see") && <BillingPanel key={me.account.id} account={me.account} />}
			{me?.account && <MembersPanel account={me.account} />}
			{me?.account && may(me.account.role, "sign_in.manage") && <CompanyPanel account={me.account} />}
			{me?.account && <NoticesPanel account={me.account} />}
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

function LanguagePanel() {
	return (
		<Panel title={t("Language")}>
			<OwnLanguage />
		</Panel>
	);
}

/** The person's language, for pages and mails on every device. */
function OwnLanguage() {
	const save = useAction(async (wanted: Language) => {
		await api.setLanguage(wanted);
		chooseLanguage(wanted);
	});
	return (
		<>
			{save.error && <Problem error={save.error} />}
			<LanguageSwitch choose={(wanted) => void save.run(wanted)} />
		</>
	);
}

function ProfilePanel() {
	const { me, refresh } = useSession();
	return (
		<NamePanel
			title={t("You")}
			label={t("Name")}
			name={me?.user.name ?? ""}
			below={
				me?.user.operator
					? t("Signed in as {email}, operator of the service.", { email: me.user.email })
					: t("Signed in as {email}.", { email: me?.user.email ?? "" })
			}
			save={async (name) => {
				await authApi.updateName(name);
				await refresh();
			}}
		>
			<Group mt="sm">
				<span>{t("Language")}</span>
				<OwnLanguage />
			</Group>
		</NamePanel>
	);
}

function AccountPanel() {
	const { me, refresh } = useSession();
	const account = me?.account;
	if (!account) return null;
	return (
		<NamePanel
			title={t("Account")}
			label={t("Name of the account")}
			name={account.name}
			below={t("{id}; your role: {role}.", { id: account.id, role: roleName(account.role) })}
			disabled={!may(account.role, "account.change")}
			save={async (name) => {
				await api.changeAccount(account.id, { name });
				await refresh();
			}}
		/>
	);
}

/** Time zone in which periodic caps start again. */
function TimeZonePanel() {
	const { me, refresh } = useSession();
	const account = me?.account;
	const [zone, setZone] = useState(account?.timeZone ?? "UTC");
	const save = useAction(async () => {
		if (account) await api.changeAccount(account.id, { timeZone: zone });
		await refresh();
	});
	if (!account) return null;
	return (
		<Panel title={t("Time zone")}>
			<Form
				onSubmit={save.run}
				error={save.error}
				end={<PanelEnd label={t("Save")} busy={save.busy} disabled={zone === account.timeZone} />}
			>
				<Select
					label={t("Caps begin anew at midnight in")}
					data={[...new Set(["UTC", account.timeZone, ...Intl.supportedValuesOf("timeZone")])]}
					searchable
					allowDeselect={false}
					limit={100}
					disabled={!may(account.role, "account.change")}
					value={zone}
					onChange={(chosen) => setZone(chosen ?? zone)}
					nothingFoundMessage={t("No such time zone")}
				/>
				<p className="small dim">{t("Caps of keys that are by the day, week or month. Weeks begin on Monday.")}</p>
			</Form>
		</Panel>
	);
}

function NamePanel(props: {
	title: string;
	label: string;
	name: string;
	below: string;
	disabled?: boolean;
	save: (name: string) => Promise<void>;
	children?: ReactNode;
}) {
	const [name, setName] = useState(props.name);
	const save = useAction(() => props.save(name.trim()));
	return (
		<Panel title={props.title}>
			<Form
				onSubmit={save.run}
				error={save.error}
				end={
					<PanelEnd label={t("Save")} busy={save.busy} disabled={name.trim() === "" || name.trim() === props.name} />
				}
			>
				<TextField
					label={props.label}
					maxLength={200}
					disabled={props.disabled ?? false}
					value={name}
					onChange={setName}
				/>
				<p className="small dim">{props.below}</p>
			</Form>
			{props.children}
		</Panel>
	);
}

function PasswordPanel() {
	const [current, setCurrent] = useState("");
	const [next, setNext] = useState("");
	const [changed, setChanged] = useState(false);
	const change = useAction(async () => {
		setChanged(false);
		await authApi.changePassword(current, next);
		setCurrent("");
		setNext("");
		setChanged(true);
	});
	return (
		<Panel title={t("Password")}>
			<Form
				onSubmit={change.run}
				error={change.error}
				end={
					<>
						{changed && <Notice kind="ok">{t("The password was changed.")}</Notice>}
						<PanelEnd label={t("Change the password")} busy={change.busy} />
					</>
				}
			>
				<PasswordField
					label={t("Current password")}
					autoComplete="current-password"
					value={current}
					onChange={setCurrent}
				/>
				<NewPasswordField
					label={t("New password")}
					description={t("At least {count} characters. All other sessions are ended.", { count: PASSWORD_CHARS_MIN })}
					value={next}
					onChange={setNext}
				/>
			</Form>
		</Panel>
	);
}
