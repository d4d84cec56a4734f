/** What the console refuses with, in German: the key is the English that is thrown (`refusal.ts`), `{name}` a value. */
export const germanRefusals = {
	"A field is missing or malformed.": "Ein Feld fehlt oder ist fehlerhaft.",
	"A key that only reads has no cap.": "Ein Schlüssel, der nur liest, hat keine Obergrenze.",
	"A length is required.": "Die Länge der Anfrage fehlt.",
	"A name is one line of at most {count} characters, without the address of a site.":
		"Ein Name ist eine Zeile mit höchstens {count} Zeichen, ohne die Adresse einer Website.",
	"A password has at least {count} characters.": "Ein Passwort hat mindestens {count} Zeichen.",
	"A password has at most {count} characters.": "Ein Passwort hat höchstens {count} Zeichen.",
	"A person has at most {count} passkeys.": "Eine Person hat höchstens {count} Passkeys.",
	"An account can invite {count} times a day. Try again tomorrow.":
		"Ein Konto kann {count}-mal am Tag einladen. Versuchen Sie es morgen wieder.",
	"An account keeps at least one owner.": "Ein Konto behält mindestens einen Inhaber.",
	"Another account signs in with this domain.": "Ein anderes Konto meldet sich mit dieser Domain an.",
	"At most {count} values can be given roles.": "Höchstens {count} Werten können Rollen zugeordnet werden.",
	"Card payments are not set up. Use a bank transfer.":
		"Kartenzahlungen sind nicht eingerichtet. Bitte überweisen Sie.",
	"Confirm your e-mail address first.": "Bestätigen Sie zuerst Ihre E-Mail-Adresse.",
	"Files are read by a key of the account: make one first.":
		"Dateien werden mit einem Schlüssel des Kontos gelesen: Legen Sie zuerst einen an.",
	"Give the client's secret.": "Geben Sie das Client-Geheimnis an.",
	"Invalid code": "Der Code ist falsch.",
	"Invalid email or password": "E-Mail-Adresse oder Passwort ist falsch.",
	"No company signs in here with this address.": "Mit dieser Adresse meldet sich hier kein Unternehmen an.",
	"No gateway is running: no model can be asked. Please try again.":
		"Gerade ist kein Modell erreichbar, weil kein Gateway läuft. Bitte versuchen Sie es noch einmal.",
	"Not all keys could be revoked. Please try again.":
		"Nicht alle Schlüssel konnten widerrufen werden. Bitte versuchen Sie es noch einmal.",
	"Nobody can sign up here: the service sends no mails.":
		"Hier kann sich niemand registrieren: Der Dienst verschickt keine E-Mails.",
	"Operators sign in with a second factor: set it up in your settings.":
		"Betreiber melden sich mit einem zweiten Faktor an: Richten Sie ihn in Ihren Einstellungen ein.",
	"Owners and admins move keys between projects.":
		"Schlüssel werden von Inhabern und Administratoren in andere Projekte verschoben.",
	"Owners are made, changed and removed by owners alone.":
		"Inhaber werden nur von Inhabern ernannt, geändert und entfernt.",
	"Please agree to the terms of this service.": "Bitte stimmen Sie den Bedingungen dieses Dienstes zu.",
	"Please give at most 40 letters, digits, blanks and . / + * -.":
		"Bitte geben Sie höchstens 40 Buchstaben, Ziffern, Leerzeichen und . / + * - an.",
	"Please give at most 8 lines of at most 100 characters.":
		"Bitte geben Sie höchstens 8 Zeilen mit höchstens 100 Zeichen an.",
	"Please give one line of at most 200 characters.": "Bitte geben Sie eine Zeile mit höchstens 200 Zeichen an.",
	"Please give your password again for this.": "Bitte geben Sie dafür noch einmal Ihr Passwort ein.",
	"Please sign in.": "Bitte melden Sie sich an.",
	"Send JSON.": "Die Anfrage muss JSON sein.",
	"That is no address.": "Das ist keine Adresse.",
	"That is no amount in dollars.": "Das ist kein Betrag in Dollar.",
	"A transfer is a whole number of cents.": "Eine Überweisung ist ein Betrag in ganzen Cent.",
	"That is no e-mail address.": "Das ist keine E-Mail-Adresse.",
	"Nobody can sign in with this address here. Please use another one.":
		"Mit dieser Adresse kann sich hier niemand anmelden. Bitte verwenden Sie eine andere.",
	"That is no month such as 2027-01.": "Das ist kein Monat wie 2027-01.",
	"That is no page.": "Diese Seite der Liste gibt es nicht.",
	"The address must be one of the public internet.": "Die Adresse muss im öffentlichen Internet liegen.",
	"The address must begin with https://": "Die Adresse muss mit https:// beginnen.",
	"The address must have no user and no password in it.":
		"Die Adresse darf weder Benutzernamen noch Passwort enthalten.",
	"The body is no valid JSON.": "Die Anfrage ist kein gültiges JSON.",
	"The check takes long. Its result will be in the list when it is done.":
		"Die Prüfung dauert. Ihr Ergebnis steht in der Liste, sobald sie fertig ist.",
	"The company's sign-in is not set up.": "Die Anmeldung des Unternehmens ist nicht eingerichtet.",
	"The database does not answer. Please try again.":
		"Die Datenbank antwortet nicht. Bitte versuchen Sie es noch einmal.",
	"The field {field} is missing or malformed.": "Das Feld {field} fehlt oder ist fehlerhaft.",
	"The gateway ended before it answered. Your requests say what was charged.":
		"Das Gateway wurde beendet, bevor es antwortete. Was berechnet wurde, steht bei Ihren Anfragen.",
	"The password is wrong.": "Das Passwort ist falsch.",
	"The range is empty.": "Der Zeitraum ist leer.",
	"The range is too long: at most 31 days by hour, 400 days by day.":
		"Der Zeitraum ist zu lang: nach Stunden höchstens 31 Tage, nach Tagen höchstens 400.",
	"The range is too long: at most {all} days, {one} of one account.":
		"Der Zeitraum ist zu lang: höchstens {all} Tage, für ein einzelnes Konto {one}.",
	"The request is too large.": "Die Anfrage ist zu groß.",
	"The second factor is set up already. Switch it off first.":
		"Der zweite Faktor ist bereits eingerichtet. Schalten Sie ihn zuerst ab.",
	"The terms have changed since: please read them anew.":
		"Die Bedingungen haben sich inzwischen geändert: Bitte lesen Sie sie noch einmal.",
	"The token is 16 to 64 letters, digits and dashes.":
		"Das Token besteht aus 16 bis 64 Buchstaben, Ziffern und Bindestrichen.",
	"The top-up is {state}: it cannot be cancelled.": "Die Aufladung ist {state} und kann nicht abgebrochen werden.",
	"There is no TXT record {name} with this text yet. DNS may take some minutes.":
		"Es gibt noch keinen TXT-Eintrag {name} mit diesem Text. Im DNS kann das einige Minuten dauern.",
	"There is no account {id}.": "Es gibt kein Konto {id}.",
	"There is no operator {address}.": "Es gibt keinen Betreiber {address}.",
	"There is no project {id}.": "Es gibt kein Projekt {id}.",
	"There is no statement of that month.": "Für diesen Monat gibt es keinen Auszug.",
	"There is no such account.": "Dieses Konto gibt es nicht.",
	"There is no such batch.": "Diesen Stapel gibt es nicht.",
	"There is no such call that is over.": "Einen solchen abgeschlossenen Aufruf gibt es nicht.",
	"There is no such endpoint.": "Diesen Endpunkt gibt es nicht.",
	"There is no such invitation.": "Diese Einladung gibt es nicht.",
	"There is no such key.": "Diesen Schlüssel gibt es nicht.",
	"There is no such member.": "Dieses Mitglied gibt es nicht.",
	"There is no such model.": "Dieses Modell gibt es nicht.",
	"There is no such page.": "Diese Seite gibt es nicht.",
	"There is no such passkey.": "Diesen Passkey gibt es nicht.",
	"There is no such project.": "Dieses Projekt gibt es nicht.",
	"There is no such request, or it is still running.": "Diese Anfrage gibt es nicht, oder sie läuft noch.",
	"There is no such session.": "Diese Sitzung gibt es nicht.",
	"There is no top-up {id}.": "Es gibt keine Aufladung {id}.",
	"There is no webhook: set its address first.": "Es gibt keinen Webhook: Geben Sie zuerst seine Adresse an.",
	"This account is opened by its company's sign-in alone.":
		"Dieses Konto ist nur über die Anmeldung seines Unternehmens zugänglich.",
	"This address is not verified there.": "Diese Adresse ist dort nicht bestätigt.",
	"This address was sent as many invitations as it can get in a day. Try again tomorrow.":
		"An diese Adresse gingen heute so viele Einladungen, wie an einem Tag erlaubt sind. Versuchen Sie es morgen wieder.",
	"This invitation is not valid any more, or was sent to another address than yours.":
		"Diese Einladung gilt nicht mehr oder ging an eine andere Adresse als Ihre.",
	"This is not the browser that signed up: choose a password here.":
		"In diesem Browser haben Sie sich nicht registriert: Wählen Sie hier ein Passwort.",
	"This is your own, not your company's: sign in without it.":
		"Das gehört Ihnen, nicht Ihrem Unternehmen: Melden Sie sich dafür auf dem eigenen Weg an.",
	"This link is opened by people.": "Dieser Link wird von Menschen geöffnet.",
	"This link was used already, or is too old.": "Dieser Link wurde schon verwendet oder ist zu alt.",
	"This link works on the machine that the service runs on.":
		"Dieser Link funktioniert auf dem Rechner, auf dem der Dienst läuft.",
	"This member made keys that still work: say whether they are kept or revoked.":
		"Dieses Mitglied hat Schlüssel angelegt, die noch gelten: Geben Sie an, ob sie bleiben oder widerrufen werden.",
	"This page is for operators of the service.": "Diese Seite ist für Betreiber des Dienstes.",
	"This passkey was not accepted. Try again.": "Dieser Passkey wurde nicht angenommen. Versuchen Sie es noch einmal.",
	"This password is among the first that are guessed. Choose another one.":
		"Dieses Passwort gehört zu denen, die zuerst erraten werden. Wählen Sie ein anderes.",
	"This person is a member already or invited as an owner, or too many invitations are open.":
		"Diese Person ist schon Mitglied oder als Inhaber eingeladen, oder es sind zu viele Einladungen offen.",
	"This person made keys of the project that still work: say what becomes of them.":
		"Diese Person hat Schlüssel des Projekts angelegt, die noch gelten: Geben Sie an, was aus ihnen wird.",
	"This request does not come from a page of this service.":
		"Diese Anfrage kommt nicht von einer Seite dieses Dienstes.",
	"Too many attempts. Sign in anew.": "Zu viele Versuche. Melden Sie sich neu an.",
	"Too many attempts. Try again later, sign in with a browser that you used before, or set a new password by mail.":
		"Zu viele Versuche. Versuchen Sie es später wieder, melden Sie sich in einem Browser an, den Sie schon benutzt haben, oder setzen Sie per E-Mail ein neues Passwort.",
	"Too many pages are open.": "Es sind zu viele Seiten geöffnet.",
	"You are not a member of any account.": "Sie sind in keinem Konto Mitglied.",
	"You belong to this account, or did: another operator decides about it.":
		"Sie gehören oder gehörten zu diesem Konto: Über es entscheidet ein anderer Betreiber.",
	"What was used in no project is told for at most 400 days at once.":
		"Was in keinem Projekt verbraucht wurde, wird für höchstens 400 Tage auf einmal gezeigt.",
	"You work in projects: a key of yours belongs to one of them.":
		"Sie arbeiten in Projekten: Ihre Schlüssel gehören zu einem davon.",
	"Your company's sign-in does not answer as it should. Try again later.":
		"Die Anmeldung Ihres Unternehmens antwortet nicht, wie sie soll. Versuchen Sie es später wieder.",
	"Your role in this account makes no keys any more.":
		"Mit Ihrer Rolle in diesem Konto legt man keine Schlüssel mehr an.",
	"Your role in this account ({role}) may not {right}.":
		"Ihre Rolle in diesem Konto ({role}) umfasst das nicht: {right}.",
} as const satisfies Readonly<Record<string, string>>;
