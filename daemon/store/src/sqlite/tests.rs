mod backup;
mod conformance;
mod damage;
mod directory;
mod full;
mod history;
mod support;
mod zones;
