/**
 * The same of the rooms below, of the database's functions and of what the gateway says to a page: they know no language, so
 * that a test, and not the compiler, finds what has no German. `{name}` is a value.
 */
export const germanRefusalsBelow: Readonly<Record<string, string>> = {
	// Accounts, keys and projects.
	"A cap is a positive amount of dollars.": "Eine Obergrenze ist ein positiver Betrag in Dollar.",
	"A cap's period is one of {periods}.": "Der Zeitraum einer Obergrenze ist einer von {periods}.",
	"A concurrency limit is 1 to {most} requests.": "Gleichzeitig sind 1 bis {most} Anfragen möglich.",
	"A key lists at most {count} models.": "Ein Schlüssel nennt höchstens {count} Modelle.",
	"A key that only reads has no cap to change.": "Ein Schlüssel, der nur liest, hat keine Obergrenze.",
	"A model's id is one line of text.": "Die ID eines Modells ist eine Zeile Text.",
	"A name is one line of 1 to {count} characters.": "Ein Name ist eine Zeile mit 1 bis {count} Zeichen.",
	"A rate limit is 1 to {most} requests a minute.": "Das Limit je Minute beträgt 1 bis {most} Anfragen.",
	"A time zone is a name such as UTC or Europe/Berlin.": "Eine Zeitzone ist ein Name wie UTC oder Europe/Berlin.",
	"An account has at most {count} keys in use. Revoke some first.":
		"Ein Konto hat höchstens {count} Schlüssel in Gebrauch. Widerrufen Sie zuerst einige.",
	"An account has at most {count} projects.": "Ein Konto hat höchstens {count} Projekte.",
	"An expiry is a date before the year 10000.": "Ein Ablaufdatum liegt vor dem Jahr 10000.",
	"Caps begin anew only when no instance of version 0.1 runs any more.":
		"Obergrenzen beginnen erst dann neu, wenn keine Instanz der Version 0.1 mehr läuft.",
	"Scopes are one or more of {scopes}.": "Wählen Sie mindestens einen dieser Bereiche: {scopes}.",
	"The account was changed since it was read.": "Das Konto wurde geändert, seit es gelesen wurde.",
	"The database knows no time zone {zone}.": "Die Datenbank kennt keine Zeitzone {zone}.",
	"The grace period is at most 90 days.": "Die Übergangszeit beträgt höchstens 90 Tage.",
	"The key is revoked or expired: create a new one.":
		"Der Schlüssel ist widerrufen oder abgelaufen: Legen Sie einen neuen an.",
	"The key was changed since it was read.": "Der Schlüssel wurde geändert, seit er gelesen wurde.",
	"The key was replaced by {id} already.": "Der Schlüssel wurde schon durch {id} ersetzt.",
	"The key was revoked: it cannot be changed.": "Der Schlüssel wurde widerrufen und kann nicht geändert werden.",
	"The project is archived: it cannot be changed.": "Das Projekt ist archiviert und kann nicht geändert werden.",
	"The project is archived: it takes no keys.": "Das Projekt ist archiviert und nimmt keine Schlüssel auf.",
	"The project was changed since it was read.": "Das Projekt wurde geändert, seit es gelesen wurde.",
	"The token of a rotation is 16 to 64 letters, digits and dashes.":
		"Das Zeichen eines Wechsels besteht aus 16 bis 64 Buchstaben, Ziffern und Strichen.",
	"There are projects only when no instance of version 0.1 runs any more.":
		"Projekte gibt es erst, wenn keine Instanz der Version 0.1 mehr läuft.",
	"The key was made more than an hour ago: its secret is not shown again.":
		"Der Schlüssel wurde vor mehr als einer Stunde angelegt: Sein Geheimnis wird nicht noch einmal gezeigt.",
	"There are {count} management keys in use already. Revoke some first.":
		"Es sind schon {count} Verwaltungsschlüssel in Gebrauch. Widerrufen Sie zuerst einige.",
	"There is an account with this e-mail address already.": "Mit dieser E-Mail-Adresse gibt es schon ein Konto.",
	"There is no key {id}.": "Es gibt keinen Schlüssel {id}.",
	"There is no management key {id}.": "Es gibt keinen Verwaltungsschlüssel {id}.",
	"This `Idempotency-Key` was used for another batch.":
		"Dieser `Idempotency-Key` wurde schon für einen anderen Stapel benutzt.",
	"This token was used for another request. Use a fresh one.":
		"Dieses Zeichen wurde für eine andere Anfrage verwendet. Verwenden Sie ein neues.",
	"A page has 1 to {most} rows.": "Eine Seite hat 1 bis {most} Zeilen.",
	"no account {id}": "Es gibt kein Konto {id}.",

	// Credit.
	"{count} top-ups are pending already. Cancel those that you will not pay.":
		"Es sind schon {count} Aufladungen offen. Brechen Sie die ab, die Sie nicht bezahlen werden.",
	"A card payment is at most USD 999999.99.": "Eine Kartenzahlung beträgt höchstens USD 999.999,99.",
	"A card payment is a whole number of cents.": "Eine Kartenzahlung ist ein Betrag in ganzen Cent.",
	"A card payment is confirmed by the payment service alone.":
		"Eine Kartenzahlung wird nur vom Zahlungsdienst bestätigt.",
	"A card payment is decided by the payment service alone.":
		"Über eine Kartenzahlung entscheidet allein der Zahlungsdienst.",
	"A reference is one line of 1 to {count} characters.": "Eine Referenz ist eine Zeile mit 1 bis {count} Zeichen.",
	"A second operator must confirm this one.": "Das muss ein zweiter Betreiber bestätigen.",
	"A second operator must look at this one.": "Das muss ein zweiter Betreiber prüfen.",
	"A top-up is at least USD 100.": "Eine Aufladung beträgt mindestens USD 100.",
	"A top-up is at most USD 1000000.": "Eine Aufladung beträgt höchstens USD 1.000.000.",
	"A transaction's reference is one line with two letters or digits or more.":
		"Die Referenz einer Überweisung ist eine Zeile mit mindestens zwei Buchstaben oder Ziffern.",
	"An adjustment is an amount of at most USD {most}, not zero.":
		"Eine Korrektur ist ein Betrag von höchstens USD {most}, nicht null.",
	"An adjustment was booked with this idempotency key before.":
		"Mit diesem Idempotenzschlüssel wurde schon eine Korrektur gebucht.",
	"Buy at least as much as it is bought below.":
		"Kaufen Sie mindestens so viel wie der Betrag, bei dessen Unterschreitung gekauft wird.",
	"No card is saved.": "Es ist keine Karte gespeichert.",
	"No payment waits to be confirmed.": "Keine Zahlung wartet auf eine Bestätigung.",
	"Save a card first.": "Speichern Sie zuerst eine Karte.",
	"That is more than nothing.": "Der Betrag muss größer als null sein.",
	"The account would hold more credit than can be counted.": "Das Konto hätte mehr Guthaben, als gezählt werden kann.",
	"The adjustment is booked already.": "Die Korrektur ist schon gebucht.",
	"The adjustment is {state} already.": "Die Korrektur ist schon {state}.",
	"The available credit does not cover it.": "Das verfügbare Guthaben deckt das nicht.",
	"The event is of another mode than this service's key.":
		"Das Ereignis gehört zu einem anderen Modus als der Schlüssel dieses Dienstes.",
	"The event is too large.": "Das Ereignis ist zu groß.",
	"The first look found another transaction.": "Bei der ersten Prüfung wurde eine andere Überweisung gefunden.",
	"The month's most covers one top-up at least.": "Der Höchstbetrag im Monat deckt mindestens eine Aufladung.",
	"The payment page is closed: the payment may have been made.":
		"Die Zahlungsseite ist geschlossen: Die Zahlung kann erfolgt sein.",
	"The payment service did not answer. Nothing was charged. Please try again.":
		"Der Zahlungsdienst antwortet nicht. Es wurde nichts abgebucht. Bitte versuchen Sie es noch einmal.",
	"The saved card is being charged: it cannot be cancelled now.":
		"Die gespeicherte Karte wird gerade belastet: Das kann jetzt nicht abgebrochen werden.",
	"The signature is not valid.": "Die Signatur ist ungültig.",
	"The top-up is {state} already.": "Die Aufladung ist schon {state}.",
	"The top-up is {state}: it cannot be confirmed.": "Die Aufladung ist {state} und kann nicht bestätigt werden.",
	"The top-up is {state}: it cannot be rejected.": "Die Aufladung ist {state} und kann nicht abgelehnt werden.",
	"There is a top-up with this reference already.": "Mit dieser Referenz gibt es schon eine Aufladung.",
	"There is no adjustment {id}.": "Es gibt keine Korrektur {id}.",
	"There is no finding {id}.": "Es gibt keinen Befund {id}.",
	"This adjustment was sent before, with something else in it.":
		"Diese Korrektur wurde schon einmal mit anderem Inhalt gesendet.",
	"This adjustment was sent before.": "Diese Korrektur wurde schon gesendet.",
	"This transaction has paid another top-up already.":
		"Mit dieser Überweisung wurde schon eine andere Aufladung bezahlt.",
	"{count} adjustments of yours wait for another operator already.":
		"Es warten schon {count} Ihrer Korrekturen auf einen anderen Betreiber.",

	// The checks of the books, which are no refusals and stand in the same way.
	"an account's credit is the sum of its ledger entries": "das Guthaben eines Kontos ist die Summe seiner Buchungen",
	"a budget's drawn amount is what its leases hold and have spent":
		"was ein Budget herausgegeben hat, halten seine Leases oder haben es ausgegeben",
	"no budget is overdrawn": "kein Budget ist überzogen",
	"granted and returned amounts are the sums of their operations":
		"vergebene und zurückgegebene Beträge sind die Summen ihrer Vorgänge",
	"a lease's settled amount is the sum of its charges":
		"der abgerechnete Betrag einer Lease ist die Summe ihrer Kosten",
	"every charge has its lease": "alle Kosten haben ihre Lease",
	"no lease is open whose instance has left": "keine Lease ist offen, deren Instanz gegangen ist",
	"no settled request is still shown as running": "keine abgerechnete Anfrage gilt noch als laufend",
	"every confirmed top-up is booked once, and no other":
		"jede bestätigte Aufladung ist einmal gebucht, und keine andere",
	"what leases have spent is what their days were sealed with":
		"was Leases ausgegeben haben, ist das, womit ihre Tage versiegelt wurden",
	"every closed day is as it was sealed": "jeder abgeschlossene Tag ist, wie er versiegelt wurde",
	"each seal follows from the one before it": "jedes Siegel folgt aus dem vorigen",
	holds: "gilt",
	// Where it is said what is wrong there, before the one that takes anything for a place.
	"broken {count} times, first at {place} its sealed ledger entries come to another sum":
		"{count}-mal verletzt, zuerst bei {place}: die versiegelten Buchungen ergeben eine andere Summe",
	"broken {count} times, first at {place} its sealed leases come to another sum":
		"{count}-mal verletzt, zuerst bei {place}: die versiegelten Leases ergeben eine andere Summe",
	"broken {count} times, first at {place} {sealed} settled requests were sealed, {found} are there":
		"{count}-mal verletzt, zuerst bei {place}: {sealed} abgerechnete Anfragen wurden versiegelt, {found} sind da",
	"broken {count} times, first at {place} a settled request was changed":
		"{count}-mal verletzt, zuerst bei {place}: eine abgerechnete Anfrage wurde geändert",
	"broken {count} times, first at {place} the ledger entries were changed":
		"{count}-mal verletzt, zuerst bei {place}: die Buchungen wurden geändert",
	"broken {count} times, first at {place} a confirmed top-up and its ledger entry do not agree":
		"{count}-mal verletzt, zuerst bei {place}: eine bestätigte Aufladung und ihre Buchung stimmen nicht überein",
	"broken {count} times, first at {example}": "{count}-mal verletzt, zuerst bei {example}",

	// All endpoints.
	"Something went wrong on our side.": "Bei uns ist etwas schiefgegangen.",
	"The request has a character that no text may have.": "Die Anfrage enthält ein Zeichen, das kein Text haben darf.",
};
